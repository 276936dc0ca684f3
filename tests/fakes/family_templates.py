"""Chat templates in the shapes of model families: how they write tools, calls and results. Written for tests."""

_CHATML_END = "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"

QWEN = (
    """
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- '# Tools\\n<tools>' }}
    {%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}
    {{- '\\n</tools>\\nAnswer with <tool_call>\\n{"name": ..., "arguments": ...}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant' }}
        {%- if message.content %}{{- '\\n' + message.content }}{%- endif %}
        {%- for call in message.tool_calls %}
            {%- set call = call.function %}
            {{- '\\n<tool_call>\\n{"name": "' + call.name + '", "arguments": ' }}
            {{- call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
"""
    + _CHATML_END
)

QWEN_CODER = (
    """
{%- if tools %}
    {{- '<|im_start|>system\\n<tools>' }}
    {%- for tool in tools %}
        {%- set tool = tool.function %}
        {{- '\\n<function>\\n<name>' + tool.name + '</name>\\n<description>' + tool.description + '</description>' }}
        {%- for name, one in tool.parameters.properties | items %}
            {{- '\\n<parameter>\\n<name>' + name + '</name>\\n<type>' ~ one.type ~ '</type>\\n</parameter>' }}
        {%- endfor %}
        {{- '\\n</function>' }}
    {%- endfor %}
    {{- '\\n</tools>\\n<tool_call>\\n<function=example>\\n<parameter=p>\\nvalue\\n</parameter>\\n</function>\\n</tool_call>' }}
    {{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' and message.tool_calls %}
        {{- '<|im_start|>assistant\\n' + message.content }}
        {%- for call in message.tool_calls %}
            {%- set call = call.function %}
            {{- '\\n<tool_call>\\n<function=' + call.name + '>\\n' }}
            {%- for name, value in call.arguments | items %}
                {{- '<parameter=' + name + '>\\n' }}
                {{- value if value is string else value | tojson }}
                {{- '\\n</parameter>\\n' }}
            {%- endfor %}
            {{- '</function>\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
"""
    + _CHATML_END
)

LLAMA3 = """
{{- bos_token }}
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content %}{%- set messages = messages[1:] %}
{%- else %}{%- set system = '' %}{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}
{%- if tools is not none %}
    {{- 'Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}.\\n\\n' }}
    {%- for tool in tools %}{{- tool | tojson(indent=4) }}{{- '\\n\\n' }}{%- endfor %}
{%- endif %}
{{- system + '<|eot_id|>' }}
{%- for message in messages %}
    {%- if message.role == 'assistant' and message.tool_calls %}
        {%- if message.tool_calls | length != 1 %}
            {{- raise_exception('This model only supports single tool-calls at once!') }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n{"name": "' + call.name + '", "parameters": ' }}
        {{- call.arguments | tojson }}{{- '}<|eot_id|>' }}
    {%- elif message.role == 'tool' %}
        {{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' + message.content + '<|eot_id|>' }}
    {%- else %}
        {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}
"""

MISTRAL = """
{{- bos_token }}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {%- if tools and loop.last %}{{- '[AVAILABLE_TOOLS] ' }}{{- tools | tojson }}{{- '[/AVAILABLE_TOOLS]' }}{%- endif %}
        {{- '[INST] ' + message.content + '[/INST]' }}
    {%- elif message.tool_calls %}
        {{- '[TOOL_CALLS] [' }}
        {%- for call in message.tool_calls %}
            {%- if call.id | length != 9 %}
                {{- raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}
            {%- endif %}
            {{- call.function | tojson }}{{- ', ' if not loop.last }}
        {%- endfor %}
        {{- ']' + eos_token }}
    {%- elif message.role == 'tool' %}
        {{- '[TOOL_RESULTS] {"content": ' + message.content + ', "call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- elif message.role == 'assistant' %}
        {{- ' ' + message.content + eos_token }}
    {%- else %}{{- raise_exception('Only user, assistant and tool roles are supported') }}
    {%- endif %}
{%- endfor %}
"""

MISTRAL_ARGS = (
    MISTRAL.replace("'[TOOL_CALLS] ['", "''")
    .replace(
        "{{- call.function | tojson }}{{- ', ' if not loop.last }}",
        "{{- '[TOOL_CALLS]' + call.function.name + '[ARGS]' }}{{- call.function.arguments | tojson }}",
    )
    .replace("']' + eos_token", "eos_token")
)

HARMONY = """
{{- '<|start|>system<|message|>You are an assistant.<|end|>' }}
{%- if tools %}
    {{- '<|start|>developer<|message|># Tools\\nnamespace functions {' }}
    {%- for tool in tools %}
        {{- '\\n// ' + tool.function.description + '\\ntype ' + tool.function.name + ' = () => any;' }}
    {%- endfor %}
    {{- '\\n}<|end|>' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' and message.tool_calls %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start|>assistant to=functions.' + call.name + '<|channel|>commentary json<|message|>' }}
        {{- call.arguments | tojson }}{{- '<|call|>' }}
    {%- elif message.role == 'tool' %}
        {{- '<|start|>functions.' + message.name + ' to=assistant<|channel|>commentary<|message|>' + message.content + '<|end|>' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' }}
    {%- else %}
        {{- '<|start|>' + message.role + '<|message|>' + message.content + '<|end|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}
"""

LFM2 = (
    """
{{- bos_token }}
{%- if tools %}
    {{- '<|im_start|>system\\nList of tools: <|tool_list_start|>' }}{{- tools | tojson }}{{- '<|tool_list_end|><|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.role == 'tool' %}{{- '<|tool_response_start|>' + message.content + '<|tool_response_end|>' }}
    {%- else %}{{- message.content }}{%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
"""
    + _CHATML_END
)

PHI4 = """
{%- for message in messages %}
    {%- if message.role == 'system' and tools %}
        {{- '<|system|>' + message.content + '<|tool|>' }}{{- tools | tojson }}{{- '<|/tool|><|end|>' }}
    {%- else %}{{- '<|' + message.role + '|>' + message.content + '<|end|>' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- endif %}
"""

GRANITE = """
{%- if tools %}
    {{- '<|start_of_role|>available_tools<|end_of_role|>' }}{{- tools | tojson(indent=4) }}{{- '<|end_of_text|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|start_of_role|>' + message.role + '<|end_of_role|>' + message.content + '<|end_of_text|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_of_role|>assistant<|end_of_role|>' }}{%- endif %}
"""

GEMMA3 = """
{{- bos_token }}
{%- for message in messages %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {%- endif %}
    {{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' + message.content | trim }}
    {{- '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<start_of_turn>model\\n' }}{%- endif %}
"""

_TOOLS = "{%- if tools %}{{- 'TOOLS ' }}{{- tools | tojson }}{{- '\\n' }}{%- endif %}"


def _family(user, call, result, begin, teaches):
    """A template that writes calls and results as a family's does; `teaches` is its example of a call.

    Args:
        user, begin: what stands before a message of the user, and before an answer.
        call: a loop over the calls of `message`.
        result: what a result is written as.
        teaches: text about the form, written beside the tools.
    """
    return (
        _TOOLS
        + "{%- if tools %}{{- " + repr(teaches) + " }}{%- endif %}"
        + "{%- for message in messages %}"
        + "{%- if message.role == 'assistant' %}{{- " + repr(begin) + " }}{{- message.content }}"
        + "{%- if message.tool_calls %}" + call + "{%- endif %}"
        + "{%- elif message.role == 'tool' %}" + result
        + "{%- else %}{{- " + repr(user) + " + message.content + '\\n' }}{%- endif %}"
        + "{%- endfor %}"
        + "{%- if add_generation_prompt %}{{- " + repr(begin) + " }}{%- endif %}"
    )  # fmt: skip


_VALUE = "{{- value if value is string else value | tojson }}"

MINIMAX = _family(
    "]~b]user\n",
    "{{- '\n<minimax:tool_call>\n' }}{%- for one in message.tool_calls %}"
    "{{- '<invoke name=\"' + one.function.name + '\">\n' }}"
    "{%- for key, value in one.function.arguments | items %}"
    "{{- '<parameter name=\"' + key + '\">' }}" + _VALUE + "{{- '</parameter>\n' }}{%- endfor %}"
    "{{- '</invoke>\n' }}{%- endfor %}{{- '</minimax:tool_call>' }}",
    "{{- '\n<response>' + message.content + '</response>' }}",
    "]~b]ai\n",
    "<minimax:tool_call>",
)
DEEPSEEK_V32 = _family(
    "<｜User｜>",
    "{{- '\n\n<｜DSML｜function_calls>' }}{%- for one in message.tool_calls %}"
    "{{- '\n<｜DSML｜invoke name=\"' + one.function.name + '\">\n' }}"
    "{%- for key, value in one.function.arguments | items %}"
    "{{- '<｜DSML｜parameter name=\"' + key + '\" string=\"' ~ ('true' if value is string else 'false') ~ '\">' }}"
    + _VALUE + "{{- '</｜DSML｜parameter>\n' }}{%- endfor %}"
    "{{- '</｜DSML｜invoke>' }}{%- endfor %}{{- '\n</｜DSML｜function_calls>' }}",
    "{{- '\n<result>' + message.content + '</result>' }}",
    "<｜Assistant｜>",
    "<｜DSML｜invoke>",
)  # fmt: skip
DEEPSEEK_V4 = DEEPSEEK_V32.replace("function_calls>", "tool_calls>")
DEEPSEEK = _family(
    "<｜User｜>",
    "{{- '<｜tool▁calls▁begin｜>' }}{%- for one in message.tool_calls %}"
    "{{- '<｜tool▁call▁begin｜>' + one.function.name + '<｜tool▁sep｜>' + one.function.arguments + '<｜tool▁call▁end｜>' }}"
    "{%- endfor %}{{- '<｜tool▁calls▁end｜>' }}",
    "{{- '<｜tool▁output▁begin｜>' + message.content + '<｜tool▁output▁end｜>' }}",
    "<｜Assistant｜>",
    "<｜tool▁calls▁begin｜>",
)
"""Takes arguments as text, as those of DeepSeek do up to V3.1."""
SEED = _family(
    "<seed:bos>user\n",
    "{%- for one in message.tool_calls %}{{- '\n<seed:tool_call>\n<function=' + one.function.name + '>\n' }}"
    "{%- for key, value in one.function.arguments | items %}"
    "{{- '<parameter=' + key + '>' }}" + _VALUE + "{{- '</parameter>\n' }}{%- endfor %}"
    "{{- '</function>\n</seed:tool_call>' }}{%- endfor %}",
    "{{- '<seed:bos>tool\n' + message.content }}",
    "<seed:bos>assistant\n",
    "<seed:tool_call>\n<function=f>\n<parameter=p>value</parameter>\n</function>\n</seed:tool_call>",
)
KIMI = _family(
    "<|im_user|>user<|im_middle|>",
    "{{- '<|tool_calls_section_begin|>' }}{%- for one in message.tool_calls %}"
    "{{- '<|tool_call_begin|>' + one.id + '<|tool_call_argument_begin|>' }}"
    "{{- one.function.arguments | tojson }}{{- '<|tool_call_end|>' }}"
    "{%- endfor %}{{- '<|tool_calls_section_end|>' }}",
    "{{- '<|im_system|>tool<|im_middle|>## Return of ' + message.tool_call_id + '\n' + message.content }}",
    "<|im_assistant|>assistant<|im_middle|>",
    "",
)
"""Writes the ids of calls, not their names."""
COMMAND = _family(
    "<|USER_TOKEN|>",
    "{{- '<|START_ACTION|>[\n' }}{%- for one in message.tool_calls %}"
    '{{- \'    {"tool_call_id": "\' ~ loop.index0 ~ \'", "tool_name": "\' + one.function.name + \'", "parameters": \' }}'
    "{{- one.function.arguments | tojson }}{{- '}' + ('' if loop.last else ',') + '\n' }}"
    "{%- endfor %}{{- ']<|END_ACTION|>' }}",
    "{{- '<|START_TOOL_RESULT|>' + message.content + '<|END_TOOL_RESULT|>' }}",
    "<|CHATBOT_TOKEN|>",
    "<|START_ACTION|>",
)


MINICPM = _family(
    "<|im_start|>user\n",
    "{%- for one in message.tool_calls %}{{- '<function name=\"' + one.function.name + '\">' }}"
    "{%- for key, value in one.function.arguments | items %}{{- '<param name=\"' + key + '\">' }}"
    "{%- if value is string and ('<' in value or '&' in value or '\n' in value) %}{{- '<![CDATA[' + value + ']]>' }}"
    "{%- else %}{{- value }}{%- endif %}{{- '</param>' }}{%- endfor %}{{- '</function>' }}{%- endfor %}",
    "{{- '\n<tool_response>' + message.content + '</tool_response>' }}",
    "<|im_start|>assistant\n",
    '<function name="f"><param name="p">value</param></function>',
)


def _listed(begin, end):
    return _family(
        "<user>",
        "{{- '" + begin + "[' }}{%- for one in message.tool_calls %}"
        '{{- \'{"name": "\' + one.function.name + \'", "arguments": \' }}{{- one.function.arguments | tojson }}'
        "{{- '}' + ('' if loop.last else ', ') }}{%- endfor %}{{- ']" + end + "' }}",
        "{{- '<result>' + message.content }}",
        "<assistant>",
        begin,
    )


NEMOTRON = _listed("<TOOLCALL>", "</TOOLCALL>")
APRIEL = _listed("<tool_calls>", "</tool_calls>")
GLM = _family(
    "<|user|>",
    "{%- for one in message.tool_calls %}{{- '\n<tool_call>' + one.function.name + '\n' }}"
    "{%- for key, value in one.function.arguments | items %}"
    "{{- '<arg_key>' + key + '</arg_key>\n<arg_value>' }}"
    + _VALUE
    + "{{- '</arg_value>\n' }}{%- endfor %}"
    "{{- '</tool_call>' }}{%- endfor %}",
    "{{- '<|observation|>' + message.content }}",
    "<|assistant|>",
    "<tool_call><arg_key>",
)

BY_FORM = {
    "hermes": QWEN,
    "qwen-xml": QWEN_CODER,
    "llama-json": LLAMA3,
    "mistral": MISTRAL,
    "mistral-args": MISTRAL_ARGS,
    "harmony": HARMONY,
    "lfm2": LFM2,
    "phi4": PHI4,
    "granite": GRANITE,
    "minimax": MINIMAX,
    "minicpm": MINICPM,
    "deepseek": DEEPSEEK,
    "deepseek-v3.2": DEEPSEEK_V32,
    "deepseek-v4": DEEPSEEK_V4,
    "seed": SEED,
    "kimi": KIMI,
    "command": COMMAND,
    "nemotron": NEMOTRON,
    "apriel": APRIEL,
    "glm": GLM,
    "generic": GEMMA3,
}
"""Templates by the form that they teach."""
