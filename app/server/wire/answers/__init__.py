"""What the endpoints answer, as classes: the OpenAPI document shows their schemas.

An answer is built as a plain dict where it arises, because it is written once and never read here. The tests
hold each against its class.
"""
