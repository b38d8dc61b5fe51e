"""The model in a child process: a typed protocol, its two children (llama.cpp and a scripted one) and the handle."""
