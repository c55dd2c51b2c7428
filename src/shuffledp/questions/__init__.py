"""Questions: what is asked, which randomizers answer it, how reports are counted, and what the counts tell."""
