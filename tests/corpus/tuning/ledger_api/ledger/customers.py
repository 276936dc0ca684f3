"""Customer records."""

import logging

from flask import Blueprint, jsonify, request, session

from .models import Customer, db

log = logging.getLogger("ledger.customers")
pages = Blueprint("customers", __name__)
WRITABLE = {"name", "street", "city"}


@pages.before_request
def signed_in():
    if "user_id" not in session:
        return jsonify(error="sign in first"), 401
    return None


@pages.post("/customers")
def create():
    customer = Customer(**request.get_json())
    db.session.add(customer)
    db.session.commit()
    log.info("created customer %s, tax id %s, born %s", customer.id, customer.tax_id, customer.born)
    return jsonify(id=customer.id), 201


@pages.patch("/customers/<int:customer_id>")
def rename(customer_id):
    customer = Customer.query.filter_by(id=customer_id, owner_id=session["user_id"]).first_or_404()
    for name, value in request.get_json().items():
        if name in WRITABLE:
            setattr(customer, name, value)
    db.session.commit()
    log.info("changed customer %s", customer.id)
    return "", 204


@pages.put("/customers/<int:customer_id>")
def replace(customer_id):
    customer = Customer.query.filter_by(id=customer_id, owner_id=session["user_id"]).first_or_404()
    for name, value in request.json.items():
        setattr(customer, name, value)
    db.session.commit()
    return "", 204


@pages.get("/customers/<int:customer_id>/tax")
def tax(customer_id):
    customer = db.session.get(Customer, customer_id)
    return jsonify(tax_id=customer.tax_id)
