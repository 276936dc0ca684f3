"""Tables of the contact persons, with Django."""

from django.db import models


class Contact(models.Model):
    """A person to call."""

    owner = models.ForeignKey("auth.User", on_delete=models.CASCADE)
    name = models.CharField(max_length=80)
    phone = models.CharField(max_length=20)
    insurance_number = models.CharField(max_length=12)
    public = models.BooleanField(default=False)
    verified = models.BooleanField(default=False)
