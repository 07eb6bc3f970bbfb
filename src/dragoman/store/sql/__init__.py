"""Durable stores: one set of statements for SQLite and PostgreSQL."""
