"""Holds one CMake module for building llama-cpp-python; nothing here runs in the app."""
