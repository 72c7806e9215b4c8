"""Any loop nest over tiled axes: what is read and written anywhere, reduced over any dimensions, with any number of tensors."""
