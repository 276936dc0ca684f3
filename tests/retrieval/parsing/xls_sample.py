"""`XLS`: a workbook of Excel 97 to 2003, which no library of the tests writes. It was written with xlwt.

Sheet `Prices`: row 1 `Customer`, `Since`, `Share`, `Total`; row 2 `Tesla Bakery`, a date, nothing, a number,
and `hidden` in the hidden column G; row 3 nothing, a time, a percentage, a truth; rows 5 and 6 `North`
merged, with `Oslo` and `Bergen`; row 8 hidden. The sheet `Secret` is hidden.
"""

import base64
import zlib

XLS = zlib.decompress(
    base64.b64decode(
        "eNrtWE1oE0EU/mazm582bdKaCm2hhIJVay/ixUuNVrQna7WCIkJNk8WG5kc2Eayi1tYeBdFTxUuhHlSoevEHRfTmQah/IAhCq3jy"
        "IIKCh7bxzdvd2sQIDVShut8yb2bevnnzZubNm9l9PlUzPX67YQZF2AIX5vM+uBfxBCWfXQmC3ufzsmjnXkp5BysKPi8tpFvDg6pn"
        "HrmGcr1noOCW+oQo8J7SIRxFVyath/8iOtiGqJA2tAuVfE/BFUrVqGe7apnGmK5iepNlHzLdypzzTNtJdlocxFSkq3Wz5ccHlGZ+"
        "V01U4C63ecucjajDU+nHZy4IU1bDNiMRTf6/L5pUPyZA3tGpp3VD1gO4igogHk6lUuFBwjRC5DkT+JYPA1/tEPE47PD/Ll+A+N8L"
        "+Z7f8L20iKX4Pqgl+RWUSvErqUUx/5KiAkPIHxZyf43SPvusmtGl20jE9KzkjHmkj7nRo8cMPTeLXtIE6VbyHNl+LJvLpHRDA3oS"
        "6Zgu8/6oIfN9mVw06adczyaj4Y7ogG4MErsrY+T6qZPd2WSGgliHbhzR01ToT8Tjepo8+rhUbYa7YEG4q+Ig4CcaR4DLNRwKgmTI"
        "7LUvL3f1dUd6mTPER5w0W2CNHCLyOCtb+E9Rezc9FysDfExCqYZ9JELuHbSyhg1Mh7mXRi43MA3RZqO8pbvOKuwcYZlz/LaF9Gxi"
        "vIqsXVReR+XRT3vuNY1+iKyn8mTnzInQ5JvIOJppUeJsp8AI2kSbuDwmcT9i58IKoe+Y1v8STr1KkG1XkbdO/wDmeHlA8yNh1uRs"
        "iYWaYs2dWXNRzWXpEjwPhboE65LzeFqpYFtrMfxCsWousuRkuFGYkm6S9Fq6lCK7XIoZyEO4cV3idURqUOipQ4RENMVLZRdbKtur"
        "bGmhLSrbolm2qzwut9WfViT/iCzRrHmQ0hpLeyxpD8+KKR22tHtYWtr/kUejcnu6Zim1uCOHQ0fWTyynp6LIU23PFAt0pXqmKOmZ"
        "PntWUWpWHThw4MCBAwfWBUDhqxr4CqRZVw2P9V9njtK885vkn8VeZOjJ0ffbDqQpNzBYlv+shiZsXWKJbez/hRL7qXcDA+hjOwbK"
        "9l+6KorF41lyw+DybaFy+58vx84/3P8PZ7pAWQ=="
    )
)
