"""The history of jobs and their money, in SQLite or PostgreSQL: the only package that speaks SQL.

Repositories hold the queries, one class a subject; callers open a transaction with
`Database.reading` or `Database.writing` and hand it to repositories; the end of the block commits.
Nothing here knows Kubernetes or HTTP. Times are whole milliseconds since the epoch, in UTC; money
is whole micro-dollars; both are the same on either database.
"""
