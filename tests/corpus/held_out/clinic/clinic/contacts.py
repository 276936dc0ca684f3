"""Contact persons."""

import structlog
from django.forms.models import model_to_dict
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt
from rest_framework import serializers, viewsets
from rest_framework.permissions import AllowAny, IsAuthenticated
from rest_framework.throttling import UserRateThrottle

from .records import Contact

log = structlog.get_logger()


class ContactSerializer(serializers.ModelSerializer):
    class Meta:
        model = Contact
        fields = "__all__"


class CardSerializer(serializers.ModelSerializer):
    class Meta:
        model = Contact
        fields = ["name", "phone"]
        read_only_fields = ["id"]


class Contacts(viewsets.ModelViewSet):
    queryset = Contact.objects.all()
    serializer_class = ContactSerializer
    permission_classes = [AllowAny]


class Cards(viewsets.ReadOnlyModelViewSet):
    queryset = Contact.objects.filter(public=True)
    serializer_class = CardSerializer
    permission_classes = [IsAuthenticated]
    throttle_classes = [UserRateThrottle]


@csrf_exempt
def change(request: HttpRequest, contact_id: int) -> JsonResponse:
    contact = get_object_or_404(Contact, pk=contact_id, owner=request.user)
    contact.__dict__.update(request.POST.dict())
    contact.save()
    log.info("contact changed", id=contact.pk)
    return JsonResponse({"id": contact.pk})


def show(request: HttpRequest, contact_id: int) -> JsonResponse:
    contact = get_object_or_404(Contact, pk=contact_id, owner=request.user)
    log.info("contact shown", name=contact.name, insurance_number=contact.insurance_number)
    return JsonResponse(model_to_dict(contact, fields=["id", "name", "phone"]))
