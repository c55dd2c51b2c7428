"""The command `demo`: three estimates on bundled data, or a whole collection on this machine."""
