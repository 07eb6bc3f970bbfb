"""What every party of the bench shares: standard library only, so that any peer's interpreter can import it."""
