"""Whole chat templates for make_jinja_golden.py, written by us in the manner of the published families: the same constructs (tools,
tool calls, reasoning, alternation checks, dates, content parts), with our own markers and words."""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather of a city.\nSecond line.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Name & country"},
                    "days": {"type": "integer", "default": 3, "minimum": 1},
                    "unit": {"type": "string", "enum": ["c", "f"], "nullable": True},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "any": {"type": ["string", "null"]},
                },
                "required": ["city"],
            },
            "return": {"type": "object"},
        },
    },
    {"type": "function", "function": {"name": "noop", "description": "Nothing <at> all", "parameters": {}}},
]

CALL = {"id": "abc123456", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Söul", "days": 2}}}
CALL_TEXT = {"id": "call00002", "function": {"name": "noop", "arguments": '{"a": 1}'}}

CONVERSATIONS = [
    [{"role": "user", "content": "Hello"}],
    [{"role": "system", "content": " You are terse. "}, {"role": "user", "content": "Hi there"}],
    [
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "<think>\nadd\n</think>\n\n2"},
        {"role": "user", "content": "안녕 😀\n\tand 2+2?"},
        {"role": "assistant", "content": "4", "reasoning_content": "easy"},
        {"role": "user", "content": "Thanks"},
    ],
    [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "image"}, {"type": "text", "text": "this?"}]},
    ],
    [
        {"role": "system", "content": "Use tools."},
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "name": "get_weather", "tool_call_id": "abc123456", "content": '{"t": 21}'},
        {"role": "assistant", "content": "It is 21."},
        {"role": "user", "content": "Again"},
    ],
    [
        {"role": "user", "content": "Two calls"},
        {"role": "assistant", "content": None, "reasoning_content": "both", "tool_calls": [CALL, CALL_TEXT]},
        {"role": "tool", "content": {"t": 1, "ok": True, "x": None}},
        {"role": "tool", "content": "fine"},
    ],
    [{"role": "assistant", "content": "first"}, {"role": "user", "content": "bad order"}],
    [{"role": "user", "content": "  padded  \n"}, {"role": "assistant", "content": " out "}],
    [{"role": "robot", "content": "?"}],
    [],
]

CHATML = """{%- if tools %}
    {{- '<|turn|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Functions\\n\\nYou may call these:\\n<fns>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</fns>\\nAnswer with <call>{\\"name\\": ..., \\"arguments\\": ...}</call><|end|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|turn|>system\\n' + messages[0].content + '<|end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step=true, last_query=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step and message.role == "user" and message.content is string and not(message.content.startswith('<answer>') and message.content.endswith('</answer>')) %}
        {%- set ns.multi_step = false %}
        {%- set ns.last_query = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|turn|>' + message.role + '\\n' + content + '<|end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query %}
            {%- if loop.last or (not loop.last and reasoning) %}
                {{- '<|turn|>' + message.role + '\\n<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|turn|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|turn|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|turn|>user' }}
        {%- endif %}
        {{- '\\n<answer>\\n' }}
        {{- content }}
        {{- '\\n</answer>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|turn|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""

HEADERS = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- The system message comes first. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{{- "[head]system[/head]\\n\\n" }}
{%- if builtin_tools is defined or tools is not none %}
    {{- "Environment: python\\n" }}
{%- endif %}
{%- if builtin_tools is defined %}
    {{- "Tools: " + builtin_tools | reject('equalto', 'code_interpreter') | join(", ") + "\\n\\n"}}
{%- endif %}
{{- "Today: " + date_string + "\\n\\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "[eot]" }}

{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("Tools need a first user message") }}
{%- endif %}
    {{- '[head]user[/head]\\n\\n' -}}
    {{- "Respond in the format {\\"name\\": function, \\"parameters\\": dict}." }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first_user_message + "[eot]"}}
{%- endif %}

{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '[head]' + message['role'] + '[/head]\\n\\n'+ message['content'] | trim + '[eot]' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("Only single calls!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {%- if builtin_tools is defined and tool_call.name in builtin_tools %}
            {{- '[head]assistant[/head]\\n\\n' -}}
            {{- "[py]" + tool_call.name + ".call(" }}
            {%- for arg_name, arg_val in tool_call.arguments | items %}
                {{- arg_name + '="' + arg_val | string + '"' }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- endif %}
            {%- endfor %}
            {{- ")" }}
        {%- else  %}
            {{- '[head]assistant[/head]\\n\\n' -}}
            {{- '{"name": "' + tool_call.name + '", ' }}
            {{- '"parameters": ' }}
            {{- tool_call.arguments | tojson }}
            {{- "}" }}
        {%- endif %}
        {%- if builtin_tools is defined %}
            {{- "[eom]" }}
        {%- else %}
            {{- "[eot]" }}
        {%- endif %}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "[head]ipython[/head]\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "[eot]" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '[head]assistant[/head]\\n\\n' }}
{%- endif %}
"""

INST = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}

{#- Users and assistants alternate, calls and their answers apart. #}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, roles must alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/TOOLS]" }}
            {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[I] " + system_message + "\\n\\n" + message["content"] + "[/I]" }}
        {%- else %}
            {{- "[I] " + message["content"] + "[/I]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Call IDs should have nine characters") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- else %}
                {{- "]" + eos_token }}
            {%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[RESULT] {"content": ' + content|string + ", " }}
        {%- if not message.tool_call_id is defined or message.tool_call_id|length != 9 %}
            {{- raise_exception("Call IDs should have nine characters") }}
        {%- endif %}
        {{- '"call_id": "' + message.tool_call_id + '"}[/RESULT]' }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported") }}
    {%- endif %}
{%- endfor %}
"""

TURNS = """{{ bos_token }}
{%- if messages[0]['role'] in ['system', 'developer'] -%}
    {%- if messages[0]['content'] is string -%}
        {%- set prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}
        {%- set prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}
    {%- endif -%}
    {%- set rest = messages[1:] -%}
{%- else -%}
    {%- set prefix = "" -%}
    {%- set rest = messages -%}
{%- endif -%}
{%- for message in rest -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Turns must alternate") }}
    {%- endif -%}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start>' + role + '\\n' + (prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content") }}
    {%- endif -%}
    {{ '<stop>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<start>model\\n' }}
{%- endif -%}
"""

ONE_LINE = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='', is_first_sp=true) %}{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system_prompt }}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<U>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' in message %}{%- set ns.is_tool = false -%}{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}{%- if message['content'] is none %}{{'<A><calls><call>' + tool['type'] + '<sep>' + tool['function']['name'] + '\\n' + '```json' + '\\n' + tool['function']['arguments'] | tojson + '\\n' + '```' + '</call>'}}{%- else %}{{'<A>' + message['content'] + '<calls><call>' + tool['function']['name'] + '\\n' + tool['function']['arguments'] | string + '</call>'}}{%- endif %}{%- set ns.is_first = true -%}{%- else %}{{'\\n' + '<call>' + tool['function']['name'] + '</call>'}}{%- endif %}{%- endfor %}{{'</calls><eos>'}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' not in message %}{%- if ns.is_tool %}{{'</outs>' + message['content'] + '<eos>'}}{%- set ns.is_tool = false -%}{%- else %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<A>' + content + '<eos>'}}{%- endif %}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<outs><out>' + message['content'] + '</out>'}}{%- set ns.is_output_first = false %}{%- else %}{{'<out>' + message['content'] + '</out>'}}{%- endif %}{%- endif %}{%- endfor -%}{% if ns.is_tool %}{{'</outs>'}}{% endif %}{% if add_generation_prompt and not ns.is_tool %}{{'<A><think>\\n'}}{% endif %}"""

SIMPLE_TURNS = """{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'user' %}{{'<|user|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>
' + message['content'] + '<|end|>
'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>
' }}{% else %}{{ eos_token }}{% endif %}"""

GENERATION = """{#- defaults -#}
{%- if enable_thinking is not defined -%}
{%- set enable_thinking = true -%}
{%- endif -%}
{%- set mode = "/think" if enable_thinking else "/no_think" -%}
{%- if messages and messages[0].role == "system" -%}
  {%- set system_message = messages[0].content -%}
  {%- if "/no_think" in system_message -%}
    {%- set mode = "/no_think" -%}
  {%- elif "/think" in system_message -%}
    {%- set mode = "/think" -%}
  {%- endif -%}
  {%- set custom = system_message.replace("/no_think", "").replace("/think", "").rstrip() -%}
{%- endif -%}
{{- "<|s|>system\\n" -}}
{%- if custom -%}
  {{- custom -}}
{%- else -%}
  {{- "## Metadata\\n\\nMode: " ~ mode ~ "\\n\\n" -}}
{%- endif -%}
{%- if xml_tools or python_tools or tools -%}
  {{- "### Tools\\n\\n" -}}
  {%- if tools -%}
    {%- set ns = namespace(text="You have:\\n<tools>\\n") -%}
    {%- for tool in tools[:] -%}
      {%- set ns.text = ns.text ~ (tool | string) ~ "\\n" -%}
    {%- endfor -%}
    {{- ns.text ~ "</tools>" -}}
  {%- endif -%}
{%- endif -%}
{{- "<|e|>\\n" -}}
{# ───── the turns ───── #}
{%- for message in messages -%}
    {%- set content = message.content if message.content is string else "" -%}
    {%- if message.role == "user" -%}
        {{ "<|s|>" + message.role + "\\n"  + content + "<|e|>\\n" }}
    {%- elif message.role == "assistant" -%}
        {% generation %}
        {%- if mode == "/think" -%}
            {{ "<|s|>assistant\\n" + content.lstrip("\\n") + "<|e|>\\n" }}
        {%- else -%}
            {{ "<|s|>assistant\\n" + "<think>\\n\\n</think>\\n" + content.lstrip("\\n") + "<|e|>\\n" }}
        {%- endif -%}
        {% endgeneration %}
    {%- elif message.role == "tool" -%}
    {{ "<|s|>" + "user\\n"  + content + "<|e|>\\n" }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ "<|s|>assistant\\n" if mode == "/think" else "<|s|>assistant\\n<think>\\n\\n</think>\\n" }}
{%- endif -%}
"""

CHANNELS = """{#- Types of a tool's parameters, as a declaration. #}
{%- macro render_type(spec, required, nullable=false) -%}
    {%- if spec.type == "array" -%}
        {%- if spec['items'] -%}
            {%- if spec['items']['type'] == "string" -%}
                {{- "string[]" }}
            {%- elif spec['items']['type'] in ("number", "integer") -%}
                {{- "number[]" }}
            {%- else -%}
                {%- set inner = render_type(spec['items'], required) -%}
                {%- if inner == "any | any" or inner|length > 50 -%}
                    {{- "any[]" }}
                {%- else -%}
                    {{- inner + "[]" }}
                {%- endif -%}
            {%- endif -%}
            {%- if spec.nullable -%}
                {{- " | null" }}
            {%- endif -%}
        {%- else -%}
            {{- "any[]" }}
        {%- endif -%}
    {%- elif spec.type is defined and spec.type is iterable and spec.type is not string and spec.type is not mapping and spec.type[0] is defined -%}
        {%- if spec.type | length > 1 -%}
            {{- spec.type | join(" | ") }}
        {%- else -%}
            {{- spec.type[0] }}
        {%- endif -%}
    {%- elif spec.oneOf -%}
        {%- for variant in spec.oneOf -%}
            {{- render_type(variant, required) -}}
            {%- if not loop.last %}{{- " | " }}{% endif -%}
        {%- endfor -%}
    {%- elif spec.type == "string" -%}
        {%- if spec.enum -%}
            {{- '"' + spec.enum|join('" | "') + '"' -}}
        {%- else -%}
            {{- "string" }}
            {%- if spec.nullable %}{{- " | null" }}{%- endif -%}
        {%- endif -%}
    {%- elif spec.type in ["number", "integer"] -%}
        {{- "number" }}
    {%- elif spec.type == "object" -%}
        {%- if spec.properties -%}
            {{- "{\\n" }}
            {%- for name, inner in spec.properties.items() -%}
                {{- name -}}
                {%- if name not in (spec.required or []) -%}
                    {{- "?" }}
                {%- endif -%}
                {{- ": " }}
                {{ render_type(inner, inner.required or []) }}
                {%- if not loop.last -%}
                    {{-", " }}
                {%- endif -%}
            {%- endfor -%}
            {{- "}" }}
        {%- else -%}
            {{- "object" }}
        {%- endif -%}
    {%- else -%}
        {{- "any" }}
    {%- endif -%}
{%- endmacro -%}

{%- macro render_tools(namespace_name, tools) -%}
    {{- "## " + namespace_name + "\\n\\n" }}
    {{- "namespace " + namespace_name + " {\\n\\n" }}
    {%- for tool in tools %}
        {%- set tool = tool.function %}
        {{- "// " + tool.description + "\\n" }}
        {{- "type "+ tool.name + " = " }}
        {%- if tool.parameters and tool.parameters.properties %}
            {{- "(_: {\\n" }}
            {%- for name, spec in tool.parameters.properties.items() %}
                {%- if spec.description %}
                    {{- "// " + spec.description + "\\n" }}
                {%- endif %}
                {{- name }}
                {%- if name not in (tool.parameters.required or []) %}
                    {{- "?" }}
                {%- endif %}
                {{- ": " }}
                {{- render_type(spec, tool.parameters.required or []) }}
                {%- if spec.default is defined %}
                    {%- if spec.enum %}
                        {{- ", // default: " + spec.default }}
                    {%- elif spec.oneOf %}
                        {{- "// default: " + spec.default }}
                    {%- else %}
                        {{- ", // default: " + spec.default|tojson }}
                    {%- endif %}
                {%- endif %}
                {%- if not loop.last %}
                    {{- ",\\n" }}
                {%- else %}
                    {{- ",\\n" }}
                {%- endif -%}
            {%- endfor %}
            {{- "}) => any;\\n\\n" }}
        {%- else %}
            {{- "() => any;\\n\\n" }}
        {%- endif %}
    {%- endfor %}
    {{- "} // namespace " + namespace_name }}
{%- endmacro -%}

{%- macro build_system() -%}
    {%- if model_identity is not defined %}
        {%- set model_identity = "You are a model." %}
    {%- endif %}
    {{- model_identity + "\\n" }}
    {%- if reasoning_effort is not defined %}
        {%- set reasoning_effort = "medium" %}
    {%- endif %}
    {{- "Reasoning: " + reasoning_effort + "\\n\\n" }}
    {{- "# Valid channels: analysis, final." }}
    {%- if tools -%}
        {{- "\\nCalls go to the channel: 'commentary'." }}
    {%- endif -%}
{%- endmacro -%}

{%- if messages[0].role == "developer" or messages[0].role == "system" %}
    {%- set developer_message = messages[0].content %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set developer_message = "" %}
    {%- set loop_messages = messages %}
{%- endif %}
{{- "<|start|>system<|message|>" }}
{{- build_system() }}
{{- "<|end|>" }}
{%- if developer_message or tools %}
    {{- "<|start|>developer<|message|>" }}
    {%- if developer_message %}
        {{- "# Instructions\\n\\n" }}
        {{- developer_message }}
    {%- endif %}
    {%- if tools -%}
        {{- "\\n\\n# Tools\\n\\n" }}
        {{- render_tools("functions", tools) }}
    {%- endif -%}
    {{- "<|end|>" }}
{%- endif %}
{%- set last_tool_call = namespace(name=none) %}
{%- for message in loop_messages -%}
    {%- if message.role == 'assistant' -%}
        {%- if "content" in message and message.content is string %}
            {%- if "<|channel|>analysis" in message.content %}
                {{- raise_exception("Do not pass channel tags.") }}
            {%- endif %}
        {%- endif %}
        {%- if "tool_calls" in message %}
            {%- set future_final = namespace(found=false) %}
            {%- for later in loop_messages[loop.index:] %}
                {%- if later.role == 'assistant' and "tool_calls" not in later %}
                    {%- set future_final.found = true %}
                {%- endif %}
            {%- endfor %}
            {%- set tool_call = message.tool_calls[0] %}
            {%- if tool_call.function %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {%- if message.content and message.thinking %}
                {{- raise_exception("Both content and thinking.") }}
            {%- elif message.reasoning_content and not future_final.found %}
                {{- "<|start|>assistant<|channel|>analysis<|message|>" + message.reasoning_content + "<|end|>" }}
            {%- endif %}
            {{- "<|start|>assistant to=" }}
            {{- "functions." + tool_call.name + "<|channel|>commentary " }}
            {{- (tool_call.content_type if tool_call.content_type is defined else "json") + "<|message|>" }}
            {{- tool_call.arguments|tojson }}
            {{- "<|call|>" }}
            {%- set last_tool_call.name = tool_call.name %}
        {%- elif loop.last and not add_generation_prompt %}
            {%- if "reasoning_content" in message %}
                {{- "<|start|>assistant<|channel|>analysis<|message|>" + message.reasoning_content + "<|end|>" }}
            {%- endif %}
            {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|return|>" }}
        {%- else %}
            {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|end|>" }}
            {%- set last_tool_call.name = none %}
        {%- endif %}
    {%- elif message.role == 'tool' -%}
        {%- if last_tool_call.name is none %}
            {{- raise_exception("A result without a call") }}
        {%- endif %}
        {{- "<|start|>functions." + last_tool_call.name }}
        {{- " to=assistant<|channel|>commentary<|message|>" + message.content|tojson + "<|end|>" }}
    {%- elif message.role == 'user' -%}
        {{- "<|start|>user<|message|>" + message.content + "<|end|>" }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|start|>assistant
{%- endif -%}
"""

BRACKETS = """{%- macro content_of(message) -%}
    {%- if message.content is string -%}{{ message.content }}
    {%- elif message.content is iterable and message.content is not mapping -%}
        {%- for part in message.content -%}
            {%- if 'text' in part -%}{{ part.text }}{%- else -%}<{{ part.type | default('part') }}>{%- endif -%}
        {%- endfor -%}
    {%- elif message.content -%}{{ message.content | tojson(ensure_ascii=False) }}
    {%- endif -%}
{%- endmacro -%}
{%- if not skip_think is defined %}{%- set skip_think = true %}{%- endif %}
{%- set role_names = {'user': '[|user|]', 'assistant': '[|assistant|]', 'tool': '[|tool|]'} %}
{%- set ns = namespace(last_user_idx=-1) %}
{%- for message in messages %}{%- if message.role == 'user' %}{%- set ns.last_user_idx = loop.index0 %}{%- endif %}{%- endfor %}
{%- if tools is defined and tools %}
    {{- role_names.get('system', '[|system|]') + '\\n# Tools' }}
    {%- for tool in tools %}
        {{- '\\n<tool>' ~ tool.function.name ~ ': ' ~ (tool.function.parameters | dictsort | map('first') | join('/')) ~ '</tool>' }}
        {%- for name, p in (tool.function.parameters.properties | default({}, true)) | dictsort %}
            {{- '\\n  - %s (%s)' % (name, p.type) }}{{ ' *' if name in tool.function.parameters.required else '' }}
        {%- endfor %}
    {%- endfor %}
    {{- '[|end|]\\n' }}
{%- endif %}
{%- for msg in messages %}
    {%- if loop.first and msg.role not in ['system', 'developer'] and not tools %}{{- '[|system|][|end|]\\n' }}{%- endif %}
    {%- if msg.role in role_names %}
        {{- role_names[msg.role] }}
    {%- elif msg.role == 'system' or msg.role == 'developer' %}
        {{- '[|system|]' }}
    {%- else %}
        {{- raise_exception('Unexpected role: ' ~ msg.role ~ ' at ' ~ loop.index) }}
    {%- endif %}
    {%- if msg.role == 'assistant' %}
        {%- if msg.reasoning_content and loop.index0 > ns.last_user_idx %}
            {{- '<think>\\n' + msg.reasoning_content | trim + '\\n</think>\\n\\n' }}
        {%- elif not skip_think %}
            {{- '<think>\\n\\n</think>\\n\\n' }}
        {%- endif %}
        {%- set text = content_of(msg) %}
        {{- text.split('</think>')[-1].strip() }}
        {%- for call in msg.tool_calls or [] %}
            {{- '\\n<tool_call>' }}{%- set fn = call.function %}
            {%- for k, v in (fn.arguments.items() if fn.arguments is mapping else []) %}
                {{- '<' ~ k ~ '>' ~ (v if v is string else v | tojson) ~ '</' ~ k ~ '>' }}
            {%- else %}
                {{- fn.arguments }}
            {%- endfor %}
            {{- '</tool_call>' }}
        {%- endfor %}
        {{- '[|end|]\\n' }}
    {%- else %}
        {{- content_of(msg) + '[|end|]\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- role_names['assistant'] }}
    {%- if enable_thinking is defined and enable_thinking is true %}{{- '<think>\\n' }}{%- else %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""

XML_TOOLS = """{% macro item_list(things, tag_name, list_tag=true) %}
    {%- if things is defined and things is iterable and things | length > 0 %}
        {%- if list_tag %}{{- '\\n<' ~ tag_name ~ '_list>' -}}{% endif %}
        {%- for item in things %}
            {{- '\\n<' ~ tag_name ~ '>' ~ item ~ '</' ~ tag_name ~ '>' -}}
        {%- endfor %}
        {%- if list_tag %}{{- '\\n</' ~ tag_name ~ '_list>' -}}{% endif %}
    {%- endif %}
{% endmacro %}
{%- set handled = ['type', 'description', 'enum', 'required'] %}
{%- for tool in tools or [] %}
    {%- if tool.function is defined %}{%- set tool = tool.function %}{%- endif %}
    {{- '\\n<function>\\n<name>' ~ tool.name ~ '</name>' }}
    {{- '\\n<description>' ~ (tool.description | trim) ~ '</description>' }}
    {{- '\\n<parameters>' }}
    {%- for param_name, param in tool.parameters.properties|default({})|items %}
        {{- '\\n<parameter>\\n<name>' ~ param_name ~ '</name>' }}
        {%- if param.type is defined %}{{- '\\n<type>' ~ param.type ~ '</type>' }}{%- endif %}
        {{- item_list(param.enum, 'enum') }}
        {%- for key in param.keys() | reject('in', handled) %}
            {%- set normed = key | replace('-', '_') | replace(' ', '_') | replace('$', '') %}
            {%- if param[key] is mapping %}
                {{- '\\n<' ~ normed ~ '>' ~ (param[key] | tojson | safe) ~ '</' ~ normed ~ '>' }}
            {%- else %}
                {{- '\\n<' ~ normed ~ '>' ~ (param[key] | string) ~ '</' ~ normed ~ '>' }}
            {%- endif %}
        {%- endfor %}
        {{- '\\n</parameter>' }}
    {%- endfor %}
    {{- item_list(tool.parameters.required, 'required', false) }}
    {{- '\\n</parameters>\\n</function>' }}
{%- endfor %}
{%- for message in messages | selectattr('content', 'string') %}
{{ loop.index }}/{{ messages | length }} {{ message.role | upper }}: {{ message.content | trim | indent(4) }}
{% if loop.nextitem is defined and loop.nextitem.role == message.role %}(same)
{% endif %}
{%- endfor %}
{{ messages | map(attribute='role') | unique | sort | join(',') }}"""

TEMPLATES = {
    "chatml with thinking": CHATML,
    "headers": HEADERS,
    "inst": INST,
    "turns": TURNS,
    "one line": ONE_LINE,
    "simple turns": SIMPLE_TURNS,
    "generation": GENERATION,
    "channels": CHANNELS,
    "brackets": BRACKETS,
    "xml tools": XML_TOOLS,
}


def contexts():
    out = []
    for i, messages in enumerate(CONVERSATIONS):
        base = {"messages": messages, "bos_token": "<s>", "eos_token": "</s>"}
        out.append({**base, "add_generation_prompt": True, "tools": None})
        out.append({**base, "add_generation_prompt": False, "tools": TOOLS, "enable_thinking": False})
        if i % 2 == 0:
            out.append({**base, "add_generation_prompt": True, "enable_thinking": True, "reasoning_effort": "high",
                        "builtin_tools": ["code_interpreter", "get_weather"], "tools_in_user_message": False,
                        "date_string": "1 Jan 2025", "skip_think": False, "tools": TOOLS[:1]})
    return out


def cases():
    """(name, template, contexts) of all chat templates."""
    shared = contexts()
    return [(name, template, shared) for name, template in TEMPLATES.items()]
