"""thread-kit: THREAD (recursive spawning of generation threads) on local llama.cpp models."""
