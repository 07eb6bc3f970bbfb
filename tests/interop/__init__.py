"""The interop bench: official SDKs against our faces, our client and our gateway."""
