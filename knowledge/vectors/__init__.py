"""Words to vectors, and the vector index, which is rebuilt from the log whenever it disagrees with it.

`embedding.py` has the embedders, `index.py` the collections, `homes.py` where these live, `fetched.py` vectors in this process's memory.
"""
