"""What several tests share: small engines, environments and episodes, a browser, a server."""
