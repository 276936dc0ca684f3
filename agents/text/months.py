"""Names of months in seven languages, by lower-case name, to their numbers."""

_NAMES = """
january february march april may june july august september october november december
jan feb mar apr may jun jul aug sep oct nov dec
januar februar märz april mai juni juli august september oktober november dezember
janvier février mars avril mai juin juillet août septembre octobre novembre décembre
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
januari februari maart april mei juni juli augustus september oktober november december
"""

MONTHS = {
    name: number
    for row in _NAMES.strip().splitlines()
    for number, name in enumerate(row.split(), start=1)
} | {"sept": 9, "jänner": 1}
