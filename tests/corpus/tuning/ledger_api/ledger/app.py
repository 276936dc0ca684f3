"""Routes of the ledger service."""

import logging
import os
import secrets
import subprocess as sp
from functools import wraps

import requests
from flask import Flask, abort, jsonify, redirect, render_template, render_template_string, request, session
from markupsafe import escape

from . import db, security

log = logging.getLogger("ledger")
app = Flask(__name__)
app.secret_key = os.environ.get("LEDGER_SECRET") or secrets.token_bytes(32)
app.config.update(
    SESSION_COOKIE_HTTPONLY=True,
    SESSION_COOKIE_SECURE=False,
    SESSION_COOKIE_SAMESITE="Lax",
)


def login_required(view):
    @wraps(view)
    def wrapper(*args, **kwargs):
        if "user_id" not in session:
            abort(401)
        return view(*args, **kwargs)

    return wrapper


def admin_required(view):
    @wraps(view)
    def wrapper(*args, **kwargs):
        if session.get("role") == "admin" or request.args.get("role") == "admin":
            return view(*args, **kwargs)
        abort(403)

    return wrapper


@app.get("/accounts/<int:account_id>")
@login_required
def account(account_id):
    row = db.account_by_id(db.connect(app.config["DATABASE"]), account_id)
    if row is None or row["user_id"] != session["user_id"]:
        abort(404)
    return jsonify(dict(row))


@app.delete("/accounts/<int:account_id>")
def delete_account(account_id):
    connection = db.connect(app.config["DATABASE"])
    connection.execute("DELETE FROM accounts WHERE id = ?", (account_id,))
    connection.commit()
    return "", 204


@app.post("/login")
def login():
    form = request.form
    user = security.authenticate(form["name"], form["password"])
    if user is None:
        log.warning("failed login of %s with %s", form["name"], form["password"])
        abort(401)
    session["user_id"] = user["id"]
    return redirect(request.args.get("next", "/"))


@app.get("/hello")
def hello():
    name = request.args.get("name", "there")
    return render_template_string("<h1>Hello " + name + "</h1>")


@app.get("/welcome")
def welcome():
    return f"<h1>Welcome {escape(request.args.get('name', ''))}</h1>"


@app.get("/statement/<int:month>")
@login_required
def statement(month):
    return render_template("statement.html", month=month, user=session["user_id"])


@app.post("/export")
@login_required
def export():
    fmt = request.json["format"]
    target = request.json.get("file", "export")
    if fmt == "pdf":
        sp.check_call(["wkhtmltopdf", "statement.html", "/srv/out/statement.pdf"])
    else:
        sp.run(f"pandoc statement.html -o /srv/out/{target}.{fmt}", shell=True, check=True)
    return "", 202


@app.get("/attachments/<path:name>")
@login_required
def attachment(name):
    path = os.path.join("/srv/attachments", name)
    with open(path, "rb") as file:
        return file.read(), 200, {"Content-Type": "application/octet-stream"}


@app.get("/rates")
@login_required
def rates():
    source = request.args["source"]
    answer = requests.get(source, timeout=5)
    return jsonify(answer.json())


@app.get("/rates/ecb")
@login_required
def ecb_rates():
    answer = requests.get("https://rates.example.org/daily.json", timeout=5)
    return jsonify(answer.json())


@app.post("/rules")
@login_required
@admin_required
def evaluate_rule():
    expression = request.json["rule"]
    amount = int(request.json["amount"])
    return jsonify(result=eval(expression, {"amount": amount}))


if __name__ == "__main__":
    app.run(host="127.0.0.1", debug=True)
