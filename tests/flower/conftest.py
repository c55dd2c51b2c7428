"""The app that runs in Flower's own processes is no test module."""

collect_ignore = ["counting_app"]
