"""Tables of the customer pages."""

from flask_sqlalchemy import SQLAlchemy

db = SQLAlchemy()


class Customer(db.Model):
    """One customer of one owner."""

    id = db.Column(db.Integer, primary_key=True)
    owner_id = db.Column(db.Integer, nullable=False)
    name = db.Column(db.String(200), nullable=False)
    street = db.Column(db.String(200))
    city = db.Column(db.String(100))
    tax_id = db.Column(db.String(20))
    born = db.Column(db.Date)
