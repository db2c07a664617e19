"""Chats on disk: a tree of messages each, with what is known about every token of a reply."""
