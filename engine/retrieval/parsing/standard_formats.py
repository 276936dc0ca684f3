"""`STANDARD_FORMATS`: the format codes that a workbook names by number and does not hold.

0 to 49 are those of ECMA-376, in English; 5 to 8 and 41 to 44, which depend on the country, are those of the
United States. 27 to 36 and 50 to 58 are dates and times of Chinese, Japanese and Korean programs, 59 to 81
are those of Thai ones.
"""

_DATE, _MONTH, _TIME, _SECONDS = "yyyy-mm-dd", "yyyy-mm", "h:mm", "h:mm:ss"

STANDARD_FORMATS: dict[str, str] = {
    "0": "General", "1": "0", "2": "0.00", "3": "#,##0", "4": "#,##0.00",
    "5": '"$"#,##0_);("$"#,##0)', "6": '"$"#,##0_);[Red]("$"#,##0)',
    "7": '"$"#,##0.00_);("$"#,##0.00)', "8": '"$"#,##0.00_);[Red]("$"#,##0.00)',
    "9": "0%", "10": "0.00%", "11": "0.00E+00", "12": "# ?/?", "13": "# ??/??",
    "14": _DATE, "15": "d-mmm-yy", "16": "d-mmm", "17": "mmm-yy",
    "18": "h:mm AM/PM", "19": "h:mm:ss AM/PM", "20": _TIME, "21": _SECONDS, "22": "m/d/yy h:mm",
    "27": _MONTH, "28": _DATE, "29": _DATE, "30": _DATE, "31": _DATE, "32": _TIME, "33": _SECONDS,
    "34": _TIME, "35": _SECONDS, "36": _MONTH,
    "37": "#,##0_);(#,##0)", "38": "#,##0_);[Red](#,##0)",
    "39": "#,##0.00_);(#,##0.00)", "40": "#,##0.00_);[Red](#,##0.00)",
    "41": '_(* #,##0_);_(* (#,##0);_(* "-"_);_(@_)',
    "42": '_("$"* #,##0_);_("$"* (#,##0);_("$"* "-"_);_(@_)',
    "43": '_(* #,##0.00_);_(* (#,##0.00);_(* "-"??_);_(@_)',
    "44": '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)',
    "45": "mm:ss", "46": "[h]:mm:ss", "47": "mm:ss.0", "48": "##0.0E+0", "49": "@",
    "50": _MONTH, "51": _DATE, "52": _MONTH, "53": _DATE, "54": _DATE, "55": _TIME, "56": _SECONDS,
    "57": _MONTH, "58": _DATE,
    "59": "0", "60": "0.00", "61": "#,##0", "62": "#,##0.00", "67": "0%", "68": "0.00%",
    "69": "# ?/?", "70": "# ??/??", "71": _DATE, "72": "d-mmm-yy", "73": "d-mmm", "74": "mmm-yy",
    "75": _TIME, "76": _SECONDS, "77": "d/m/yyyy h:mm", "78": "mm:ss", "79": "[h]:mm:ss", "80": "mm:ss.0",
    "81": _DATE,
}  # fmt: skip
