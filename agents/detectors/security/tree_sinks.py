"""Dangerous calls in the languages that tree-sitter parses: which argument of which call is a sink of which kind."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from agents.detectors.security.taint.value import SinkKind

JAVASCRIPT = ("javascript", "typescript", "tsx")
Report = Literal["user", "built", "varying", "always"]


@dataclass(frozen=True, slots=True)
class TreeSink:
    """Arguments of a call that must not be made of outsiders' data.

    Attributes:
        languages: where it applies.
        name: pattern of the dotted name of what is called.
        kind: what can happen.
        report: `user` for data of clients only, `built` for strings put together, `varying` for all that is not
            constant, `always` whatever is passed.
        arguments: positions concerned; None for all.
        looks: pattern that the constant text of the argument must match; empty matches all.
        needs: pattern that the text of the whole call must match; empty matches all.
        in_file: pattern that the file must match somewhere; empty matches all.
    """

    languages: tuple[str, ...]
    name: str
    kind: SinkKind
    report: Report
    arguments: tuple[int, ...] | None = (0,)
    looks: str = ""
    needs: str = ""
    in_file: str = ""


_SQL = r"(?i)\b(select\s|insert\s+into|update\s|delete\s+from|drop\s|alter\s|where\s|union\s|order\s+by)"
_CONDITION = r"(?i)(=|<|>|\blike\b|\bin\b)\s*\(?['\"%]?|\bwhere\b|\border\b"
_TAGS = r"<[a-zA-Z!/]"
_SECOND = (0, 1)
_K = SinkKind

SINKS: tuple[TreeSink, ...] = (
    TreeSink(JAVASCRIPT, r"\.(query|execute|raw|run|all|get|exec|\$queryRawUnsafe|\$executeRawUnsafe|prepare|each|unsafe|whereRaw|literal)$", _K.SQL, "built", looks=_SQL),
    TreeSink(JAVASCRIPT, r"(^|\.)(exec|execSync)$", _K.COMMAND, "built"),
    TreeSink(JAVASCRIPT, r"(^|\.)(exec|execSync)$", _K.COMMAND, "user"),
    TreeSink(JAVASCRIPT, r"^(eval|window\.eval|globalThis\.eval|vm\.(runInNewContext|runInThisContext|runInContext|Script))$", _K.CODE, "varying"),
    TreeSink(JAVASCRIPT, r"^Function$", _K.CODE, "varying", None),
    TreeSink(JAVASCRIPT, r"^(setTimeout|setInterval)$", _K.CODE, "built"),
    TreeSink(JAVASCRIPT, r"^require$", _K.REFLECTION, "user"),
    TreeSink(JAVASCRIPT, r"^document\.(write|writeln)$|\.insertAdjacentHTML$|\.createContextualFragment$", _K.HTML, "varying", None),
    TreeSink(JAVASCRIPT, r"(\$|jQuery)\(.*\)\.(html|append|prepend|after|before|replaceWith)$", _K.HTML, "user"),
    TreeSink(JAVASCRIPT, r"(\$|jQuery)\(.*\)\.(html|append|prepend|after|before|replaceWith)$", _K.HTML, "built", looks=_TAGS),
    TreeSink(JAVASCRIPT, r"bypassSecurityTrust(Html|Script|Url|ResourceUrl)$", _K.HTML, "varying"),
    TreeSink(JAVASCRIPT, r"^(res|response|reply)\b.*\.(send|write|end)$", _K.HTML, "user", looks=_TAGS),
    TreeSink(JAVASCRIPT, r"^(res|response|reply)\b(\.status\(\d+\))?\.(send|write|end)$", _K.HTML, "user", needs=r"\.(send|write|end)\(\s*(req|request|ctx)\.(query|params|body)\b"),
    TreeSink(JAVASCRIPT, r"\.redirect$", _K.REDIRECT, "user", None),
    TreeSink(JAVASCRIPT, r"^(window\.)?location\.(assign|replace)$", _K.REDIRECT, "user"),
    TreeSink(JAVASCRIPT, r"(^|\.)(readFile|readFileSync|createReadStream|writeFile|writeFileSync|appendFile|appendFileSync|unlink|unlinkSync|readdir|readdirSync|rm|rmSync|rmdir|sendFile|sendfile|download|createWriteStream|existsSync)$", _K.PATH, "user"),
    TreeSink(JAVASCRIPT, r"^(fetch|axios|got|request|needle|ky|bent|(superagent|axios|got|needle|undici|ky|phin)\.\w+|https?\.(get|request)|request\.(get|post))$", _K.URL, "user"),
    TreeSink(JAVASCRIPT, r"(^|\.)(RegExp)$", _K.REGEX, "user"),
    TreeSink(JAVASCRIPT, r"\.(find|findOne|findOneAndUpdate|updateOne|updateMany|deleteOne|deleteMany|countDocuments)$", _K.NOSQL, "user", needs=r"\(\s*(req|request|ctx)\.(body|query)\s*[,)]|:\s*(req|request|ctx)\.(body|query)\.\w+\s*[,}]"),
    TreeSink(JAVASCRIPT, r"\.(find|findOne|where|\$where|aggregate)$", _K.NOSQL, "built", needs=r"\$where"),
    TreeSink(JAVASCRIPT, r"(^|\.)(unserialize)$", _K.DESERIALIZE, "varying"),
    TreeSink(JAVASCRIPT, r"(^|\.)(compile|render|renderString|template)$", _K.TEMPLATE, "user", in_file=r"(?i)handlebars|pug|ejs|nunjucks|mustache|lodash|underscore|dot\b"),
    TreeSink(JAVASCRIPT, r"\.(parseXml|parseXmlString|parseFromString)$", _K.XML, "varying", needs=r"noent\s*:\s*true"),
    TreeSink(("go",), r"\.(Query|QueryRow|Exec|Prepare|Raw|QueryContext|ExecContext|QueryRowContext|PrepareContext|Queryx|Get|Select|MustExec|NamedExec|NamedQuery)$", _K.SQL, "built", _SECOND, _SQL),
    TreeSink(("go",), r"\.(Where|Having|Order|Joins|Not|Or|Group)$", _K.SQL, "built", looks=_CONDITION, in_file=r"gorm|xorm|squirrel|database/sql|sqlx"),
    TreeSink(("go",), r"^template\.(HTML|JS|URL|HTMLAttr|CSS|JSStr)$", _K.HTML, "varying"),
    TreeSink(("go",), r"^fmt\.(Fprintf|Fprint|Fprintln)$", _K.HTML, "user", None, needs=_TAGS),
    TreeSink(("go",), r"^(io\.WriteString|\w+\.Write|\w+\.WriteString|c\.(String|HTML|Data))$", _K.HTML, "user", None, looks=_TAGS),
    TreeSink(("go",), r"^http\.(Get|Post|Head|PostForm)$|[cC]lient\.(Get|Post|Head|PostForm)$", _K.URL, "user"),
    TreeSink(("go",), r"^http\.NewRequest(WithContext)?$", _K.URL, "user", (1, 2)),
    TreeSink(("go",), r"^net\.Dial(Timeout)?$", _K.URL, "user", (1,)),
    TreeSink(("go",), r"^http\.Redirect$", _K.REDIRECT, "user", (2,)),
    TreeSink(("go",), r"^c\.Redirect(To)?$|^ctx\.Redirect$", _K.REDIRECT, "user", _SECOND),
    TreeSink(("go",), r"^(os\.(Open|ReadFile|Create|OpenFile|Remove|RemoveAll|WriteFile|ReadDir)|ioutil\.(ReadFile|WriteFile|ReadDir))$", _K.PATH, "user"),
    TreeSink(("go",), r"^http\.ServeFile$", _K.PATH, "user", (2,)),
    TreeSink(("go",), r"^(c|ctx)\.(File|FileAttachment|SendFile|Attachment|Inline|Download)$", _K.PATH, "user"),
    TreeSink(("go",), r"^c\.SaveUploadedFile$", _K.PATH, "user", (1,)),
    TreeSink(("go",), r"\.(Parse)$", _K.TEMPLATE, "user", in_file=r"text/template|html/template", needs=r"template\.|New\("),
    TreeSink(("rust",), r"(^|::|\.)(query|query_as|execute|sql_query|query_row|prepare|query_one|batch_execute|raw_sql|query_scalar|query_map|execute_batch|fetch_all|simple_query|query_opt|from_string)$", _K.SQL, "built", _SECOND, _SQL),
    TreeSink(("rust",), r"^(std::)?(tokio::)?fs::(read|read_to_string|write|remove_file|remove_dir_all|File::open|read_dir|create_dir_all)$|^((std::)?(tokio::)?fs::)?File::(open|create)$|NamedFile::open(_async)?$", _K.PATH, "user"),
    TreeSink(("rust",), r"^(reqwest::(blocking::)?get|ureq::(get|post)|surf::get)$|^\w*client\.(get|post|put|delete|head)$", _K.URL, "user"),
    TreeSink(("rust",), r"(\.body|^Html|^web::Html|RawHtml|\.html)$", _K.HTML, "user", looks=_TAGS),
    TreeSink(("rust",), r"(^Html|^RawHtml|::Html)$", _K.HTML, "built", looks=_TAGS),
    TreeSink(("rust",), r"Redirect::(to|temporary|permanent)$|Redirect::(found|see_other)$", _K.REDIRECT, "user"),
    TreeSink(("rust",), r"^(Regex|regex::Regex|RegexBuilder)::new$", _K.REGEX, "user"),
    TreeSink(("rust",), r"^(std::process::)?Command::new$", _K.COMMAND, "user"),
    TreeSink(("java",), r"\.(executeQuery|executeUpdate|execute|prepareStatement|createQuery|createNativeQuery|queryForObject|queryForList|query|prepareCall|addBatch|update|batchUpdate)$", _K.SQL, "built", looks=_SQL),
    TreeSink(("java",), r"\.exec$", _K.COMMAND, "built"),
    TreeSink(("java",), r"\.exec$", _K.COMMAND, "user"),
    TreeSink(("java",), r"^(ScriptEngine|engine|scriptEngine)\.eval$|parser\.parseExpression$", _K.CODE, "varying"),
    TreeSink(("java",), r"\.readObject$|\.readUnshared$", _K.DESERIALIZE, "always", (), in_file=r"ObjectInputStream|XMLDecoder"),
    TreeSink(("java",), r"^(new)?Yaml\(?\)?\.load$|xstream\.fromXML$", _K.DESERIALIZE, "varying"),
    TreeSink(("java",), r"^(File|java\.io\.File|FileInputStream|FileReader|FileOutputStream|Paths\.get|Path\.of)$", _K.PATH, "user", None),
    TreeSink(("java",), r"\.sendRedirect$", _K.REDIRECT, "user"),
    TreeSink(("java",), r"^(URL|java\.net\.URL|URI\.create)$|restTemplate\.(getForObject|getForEntity|postForObject)$", _K.URL, "user"),
    TreeSink(("java",), r"(getWriter\(\)|writer|out)\.(print|println|write|append)$", _K.HTML, "user", looks=_TAGS),
    TreeSink(("java",), r"\.search$", _K.LDAP, "built", (1,), r"\(\w+="),
    TreeSink(("java",), r"\.(evaluate|compile)$", _K.XPATH, "built", (0,), r"//|\[@?\w+=", in_file=r"XPath"),
)  # fmt: skip
_COMPILED = [(sink, re.compile(sink.name)) for sink in SINKS]


@cache
def _of_language(language: str) -> list[tuple[TreeSink, re.Pattern[str]]]:
    return [pair for pair in _COMPILED if language in pair[0].languages]


def sinks_of(language: str, name: str) -> list[TreeSink]:
    """The sinks among the arguments of a call of this name."""
    return [sink for sink, pattern in _of_language(language) if pattern.search(name)]
