"""The description of the API: an OpenAPI document, derived from routes and bodies, and a page of it."""
