"""Dense convolutions as implicit GEMM."""
