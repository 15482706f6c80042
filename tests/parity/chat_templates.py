"""Chat templates in the styles of popular models, written for chat_template_test.py."""

CHATML = """{% for message in messages %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

CHATML_WITH_DEFAULT = """{%- if messages[0]['role'] != 'system' -%}
{{- '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages if message.content is not none -%}
    {{- '<|im_start|>' ~ message.role ~ '\\n' ~ message.content | trim ~ '<|im_end|>' ~ ('\\n' if not loop.last) -}}
{%- else -%}nobody speaks{%- endfor -%}"""

LLAMA_2 = """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system = messages[0]['content'] %}
{% else %}{% set loop_messages = messages %}{% set system = false %}{% endif %}{% for message in loop_messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate user/assistant') }}{% endif %}
{% if loop.index0 == 0 and system != false %}{% set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + message['content'] %}
{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}
{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}
{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""

LLAMA_3_TOOLS = """{{- bos_token }}
{%- if custom_tools is defined %}{%- set tools = custom_tools %}{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- else %}{%- set date_string = "26 Jul 2024" %}{%- endif %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\nToday Date: " + date_string + "\\n\\n" }}
{%- if tools is not none %}
    {%- for t in tools %}{{- t | tojson(indent=4) }}{{- "\\n\\n" }}{%- endfor %}
{%- endif %}
{{- system_message + "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls | length == 1 %}{{- raise_exception("One tool-call at once!") }}{%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n{"name": "' + tool_call.name + '", "parameters": ' }}
        {{- tool_call.arguments | tojson }}{{- "}<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}{{- message.content | tojson }}{%- else %}{{- message.content }}{%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}{%- set system_message = messages[0]["content"] %}{%- set loop_messages = messages[1:] %}
{%- else %}{%- set loop_messages = messages %}{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace(index=0) %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}{{- raise_exception("roles must alternate") }}{%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}{{- '"' + key + '": "' + val + '"' }}{%- else %}{{- '"' + key + '": ' + val|tojson }}{%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}{%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}{{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}{{- "[INST] " + message["content"] + "[/INST]" }}{%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}{{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}{{- raise_exception("IDs have 9 characters") }}{%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
        {%- endfor %}{{- "]" + eos_token }}
    {%- elif message["role"] == "assistant" %}{{- " " + message["content"]|trim + eos_token }}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {{- '[TOOL_RESULTS] {"content": ' + message.content|string + ", " }}{{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}{{- raise_exception("Only user and assistant roles!") }}{%- endif %}
{%- endfor %}"""

GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('no alternation') }}{% endif %}
{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}
{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}
{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"""

GEMMA_PARTS = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}{%- set prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}{%- set prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}{%- endif -%}
    {%- set rest = messages[1:] -%}
{%- else -%}{%- set prefix = "" -%}{%- set rest = messages -%}{%- endif -%}
{%- for message in rest -%}
    {{ '<start_of_turn>' + ("model" if message['role'] == 'assistant' else message['role']) + '\\n' + (prefix if loop.first else "") }}
    {%- if message['content'] is string -%}{{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}{{ '<start_of_image>' }}{%- elif item['type'] == 'text' -%}{{ item['text'] | trim }}{%- endif -%}
        {%- endfor -%}
    {%- else -%}{{ raise_exception("Invalid content type") }}{%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}"""

QWEN_TOOLS = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- "# Tools\\n\\n<tools>" }}{%- for tool in tools %}{{- "\\n" }}{{- tool | tojson }}{%- endfor %}{{- "\\n</tools><|im_end|>\\n" }}
{%- elif messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}{%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}{%- set content = message.content %}{%- else %}{%- set content = '' %}{%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}{%- set reasoning_content = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or (not loop.last and reasoning_content)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}{{- '<|im_start|>' + message.role + '\\n' + content }}{%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}{{- '\\n' }}{%- endif %}
                {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
                {{- '<tool_call>\\n{"name": "' + tool_call.name + '", "arguments": ' }}
                {%- if tool_call.arguments is string %}{{- tool_call.arguments }}{%- else %}{{- tool_call.arguments | tojson }}{%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' + content + '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""

PHI_3 = """{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>\\n' + message['content'] + '<|end|>\\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"""

PHI_4_TOOLS = """{% for message in messages %}{% if message['role'] == 'system' and tools is not none %}{{ '<|system|>' ~ message.content ~ '<|tool|>' ~ tools|map(attribute='function')|list|tojson(separators=(',', ':')) ~ '<|/tool|>' ~ '<|end|>' }}{% else %}{{ '<|' ~ message.role ~ '|>' ~ message.content ~ '<|end|>' }}{% endif %}{% endfor %}"""

DEEPSEEK = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, system_prompt='', is_first_sp=true) %}{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system_prompt }}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<｜User｜>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' in message %}{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}{{'<｜Assistant｜>' + (message['content'] or '') + '<｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + tool['function']['name'] + '\\n```json\\n' + (tool['function']['arguments'] if tool['function']['arguments'] is string else tool['function']['arguments']|tojson) + '\\n```'}}{%- set ns.is_first = true -%}{%- endif %}{%- endfor %}{{'<｜end▁of▁sentence｜>'}}{%- elif message['role'] == 'assistant' %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>'}}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{{'<｜tool▁output▁begin｜>' + message['content'] + '<｜tool▁output▁end｜>'}}{%- endif %}{%- endfor -%}{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜><think>\\n'}}{% endif %}"""

ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

COMMAND = """{{ bos_token }}
{%- macro json_to_python_type(json_spec) %}
{%- set basic_type_map = {
    "string": "str",
    "number": "float",
    "integer": "int",
    "boolean": "bool"
} %}
{%- if basic_type_map[json_spec.type] is defined %}
    {{- basic_type_map[json_spec.type] }}
{%- elif json_spec.type == "array" %}
    {{- "List[" + json_to_python_type(json_spec.items) + "]" }}
{%- elif json_spec.type == "object" %}
    {{- "Dict" }}
{%- elif json_spec.type is iterable %}
    {{- "Union[" }}{%- for t in json_spec.type %}{{- json_to_python_type({"type": t}) }}{%- if not loop.last %}{{- "," }}{%- endif %}{%- endfor %}{{- "]" }}
{%- else %}{{- "Any" }}{%- endif %}
{%- endmacro %}
{%- for tool in tools or [] %}
def {{ tool.function.name }}(
{%- for name, field in tool.function.parameters.properties.items() -%}
    {{- name }}: {% if name not in tool.function.parameters.required|default([]) %}Optional[{{ json_to_python_type(field) }}] = None{% else %}{{ json_to_python_type(field) }}{% endif %}
    {%- if not loop.last %}, {% endif %}
{%- endfor -%}
) -> {{ tool.function.return.type | default('List[Dict]') }}:
    \"\"\"{{ tool.function.description | indent(4) }}
    {%- for name, field in tool.function.parameters.properties | dictsort %}
    {{ name }} ({{ field.type }}): {{ field.description | default('?') }}
    {%- endfor %}
    \"\"\"
    pass
{% endfor %}
{% for message in messages %}<|START|><|{{ (message.role ~ '_token') | upper }}|>{{ message.content }}<|END|>{% endfor %}"""

GRANITE = """{%- if documents %}{%- set system = 'Use the documents. Today is ' + strftime_now('%B %d, %Y') + '.' %}{%- elif messages and messages[0]['role'] == 'system' %}{%- set system = messages[0]['content'] %}{%- else %}{%- set system = 'You are Granite.' %}{%- endif %}
{{- '<|start_of_role|>system<|end_of_role|>' + system + '<|end_of_text|>\\n' }}
{%- if documents %}{{- '<|start_of_role|>documents<|end_of_role|>' }}{%- for document in documents %}{{- 'Document ' + loop.index | string + '\\n' + document['text'] }}{%- if not loop.last %}{{- '\\n\\n' }}{%- endif %}{%- endfor %}{{- '<|end_of_text|>\\n' }}{%- endif %}
{%- for message in messages %}{{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + message['content'] + '<|end_of_text|>\\n' }}
{%- if loop.last and add_generation_prompt %}{{- '<|start_of_role|>assistant' }}{%- if controls %}{{- ' ' + controls | tojson() }}{%- endif %}{{- '<|end_of_role|>' }}{%- endif %}{%- endfor %}"""

SMOLLM_3 = """{%- if enable_thinking is not defined -%}{%- set enable_thinking = true -%}{%- endif -%}
{%- set reasoning_mode = "/think" if enable_thinking else "/no_think" -%}
{{- "<|im_start|>system\\n" -}}
{%- if messages[0].role == "system" -%}
  {%- set system_message = messages[0].content -%}
  {%- if "/no_think" in system_message -%}{%- set reasoning_mode = "/no_think" -%}{%- endif -%}
  {%- set custom = system_message.replace("/no_think", "").replace("/think", "").rstrip() -%}
{%- endif -%}
## Metadata

{{ "Today Date: " ~ strftime_now("%d %B %Y") ~ "\\nReasoning Mode: " + reasoning_mode + "\\n\\n" }}
{%- if custom %}{{ custom + "\\n\\n" }}{% endif -%}
{%- if xml_tools or python_tools or tools -%}
  {%- set ns = namespace(xml_tool_string="<tools>\\n") -%}
  {%- for tool in tools[:] -%}{%- set ns.xml_tool_string = ns.xml_tool_string ~ (tool | string) ~ "\\n" -%}{%- endfor -%}
  {{- ns.xml_tool_string + "</tools>" -}}
{%- endif -%}
{{- "<|im_end|>\\n" -}}
{%- for message in messages -%}
  {%- set content = message.content if message.content is string else "" -%}
  {%- if message.role == "user" -%}{{ "<|im_start|>" + message.role + "\\n" + content + "<|im_end|>\\n" }}
  {%- elif message.role == "assistant" -%}
    {% generation %}{%- if reasoning_mode == "/think" -%}{{ "<|im_start|>assistant\\n" + content.lstrip("\\n") + "<|im_end|>\\n" }}{%- else -%}{{ "<|im_start|>assistant\\n<think>\\n\\n</think>\\n" + content.lstrip("\\n") + "<|im_end|>\\n" }}{%- endif -%}{% endgeneration %}
  {%- elif message.role == "tool" -%}{{ "<|im_start|>user\\n" + content + "<|im_end|>\\n" }}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ "<|im_start|>assistant\\n" }}{%- if reasoning_mode == "/no_think" %}{{ "<think>\\n\\n</think>\\n" }}{%- endif %}{%- endif -%}"""

GENERATION = """{{ bos_token }}{% for m in messages %}
[{{ m.role }}] {% if m.role == 'assistant' %}{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}
{% endfor %}"""

GENERATION_FIRST = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{{ m.role }}{% endfor %}"

GENERATION_IN_MACRO = "{% macro say(m) %}({{ m.role }}) {% generation %}{{ m.content }}{% endgeneration %}{% endmacro %}>{% for m in messages %}{{ say(m) }}{% endfor %}"

MACROS = """{% macro wrap(text, left='<', right=none, n=1) -%}
{{ left * n }}{{ text }}{{ (right if right is not none else '>') * n }}{% if caller is defined %}{{ caller(text | length) }}{% endif %}
{%- endmacro %}
{% macro all() %}{{ varargs | join('/') }}{{ kwargs | dictsort }}{% endmacro %}
{% for m in messages %}{% call(n) wrap(m.role, n=2, left='«', right='»') %} {{ n }}: {{ m.content }}{% endcall %}
{{ wrap(text=m.role) }}{{ all(1, m.role, last=loop.last, first=loop.first) }}
{% endfor %}"""

BLOCKS = """{% set intro | upper | trim %}   {{ messages | length }} messages
{% endset %}{{ intro }}{% filter replace('e', '3') %}{% for m in messages %}{{ m.role }} {% endfor %}{% endfilter %}
{% with a = messages | length, b = 'x' %}{{ b * a }}{% endwith %}{{ a is defined }}
{% raw %}{{ not this }}{% endraw %}{# nor this #}
  {%+ if true %}kept{% endif +%}
  {% if true -%}   stripped   {%- endif %}
{% set a, (b, c) = 1, [2, 3] %}{{ a }}{{ b }}{{ c }}"""

LOOPS = """{% for m in messages %}{{ loop.index }}/{{ loop.length }} {{ loop.revindex0 }} {{ loop.first }} {{ loop.cycle('a', 'b') }} {{ loop.previtem.role if loop.previtem is defined }}>{{ m.role }}>{{ loop.nextitem.role | default('end') }} {{ loop.changed(m.role) }}
{% if loop.index == 3 %}{% break %}{% endif %}{% if m.role == 'system' %}{% continue %}{% endif %}
{% for k, v in m.items() recursive_no if false %}{% endfor %}{% endfor %}""".replace(" recursive_no if false", " if v is string")

NUMBERS = """{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1e-5 }} {{ 3.0 }} {{ true + 1 }} {{ 1 == 1.0 }} {{ '1' == 1 }}
{{ 2.5 | round }} {{ 2.675 | round(2) }} {{ '3.7' | int }} {{ 'x' | int(7) }} {{ '2.5' | float }} {{ -3 | abs }} {{ messages | length * 2 }} {{ 1 < 2 < 3 }} {{ [1, 2] < [1, 3] }} {{ 5 % 3.5 }}
{{ range(1, 10, 3) | list }} {{ [3, 1, 2] | sort }} {{ [3, 1, 2] | max }} {{ [1, 2, 3] | sum }} {{ ['b', 'A', 'a'] | sort }} {{ ['b', 'A', 'a'] | unique | list }} {{ '%05.1f|%-4d|%s' % (2.25, 7, none) }} {{ '{:>6.2f}|{}'.format(3.14159, 'x') }}"""

TEXTS = """{% for m in messages %}{% set c = m.content if m.content is string else m.content | string %}
{{ c.upper() }}|{{ c.title() }}|{{ c | title }}|{{ c.capitalize() }}|{{ c | capitalize }}|{{ c.lower() }}|{{ c.split() }}|{{ c.split(' ', 1) }}|{{ c.strip('Hi! ') }}|{{ c[1:4] }}|{{ c[::-1] }}|{{ c[-2:] }}|{{ c | length }}|{{ c.find('e') }}|{{ c.replace('e', 'E', 2) }}|{{ c.splitlines() }}|{{ c | first }}|{{ c | list }}|{{ [c] }}|{{ c | tojson }}|{{ c | tojson(ensure_ascii=true) }}|{{ c | indent(2, true) }}|{{ c.startswith(('H', 'W')) }}|{{ c | wordcount }}|{{ c | e }}|{{ c.rsplit(None, 1) }}|{{ c.partition(' ') }}
{% endfor %}"""

DATA = """{{ messages }}|{{ tools | tojson }}|{{ tools | tojson(indent=2) }}|{{ messages | tojson(separators=(',', ':'), sort_keys=true) }}
{{ messages | map(attribute='role') | unique | join(', ') }}|{{ messages | selectattr('role', 'in', ['user', 'tool']) | map(attribute='content') | list }}|{{ messages | rejectattr('content', 'string') | list | length }}|{{ messages | groupby('role') | map('first') | list }}
{% for t in tools or [] %}{{ t.function.parameters.properties.keys() | list }}{{ t.function.parameters.items() | list | length }}{{ t.get('x', 'no') }}{{ t['function']['parameters']['properties'] | dictsort }}{{ t.items is defined }}{% endfor %}
{{ {'a': 1, 'b': [none, true, 1.5, "it's"]} }}{{ (1,) }}{{ dict(a=1) }}{{ messages[0].nothing is defined }}{{ messages[99] is defined }}{{ nothing | default('x') }}{{ messages is sequence }}{{ messages[0] is mapping }}{{ messages == messages[:] }}{{ {} or 'empty' }}{{ messages and 'some' }}"""

EDGES = """{{ '%.*d|%.*f|%.*s|%*d|' % (-1, 5, -1, 2.5, -1, 'abc', -4, 7) }}{{ '%s' is divisibleby 2 }}{{ 6 is divisibleby 3 }}
{{ ('<b>' | escape) is escaped }}{{ '<b>' is escaped }}{% set y = 2 %}{% for x in [1, 2, 3] if x != y %}{% set y = 3 %}{{ x }}{{ loop.last }},{% endfor %}
{% set least = -9223372036854775807 - 1 %}{{ 'ab'.center(least) }}|{{ 'ab'.zfill(least) }}|{{ 1234.5 | round(-400) }}|{{ 1234.5 | round(-2) }}|{{ '1_0' | int }}|{{ 'é_1' | int(7) }}
{{ [1e22, 1e16, 123456789012345680.0, 1e15, 1e-4, 1e-5, -0.0, 1.0, 0.1, 2.5e-310] }}{{ '\x7f\x1f' | tojson }}"""

FORBIDDEN = "{% if messages | length > 1 %}{{ messages.pop() }}{% endif %}{{ messages.append is defined }}"
UNDEFINED = "{{ messages[0].nothing.more }}"
BROKEN = "{% for m in messages %}{{ m.role }}"
UNKNOWN_FILTER = "{% for m in messages %}{{ m.role | no_such_filter }}{% endfor %}{{ messages | no_such_filter }}"
ADDED = "{% for m in messages %}{{ m.role + ': ' + m.content + 1 }}{% endfor %}"
ALPACA = "{{ bos_token }}{% for m in messages %}{{ '### ' ~ {'user': 'Instruction', 'assistant': 'Response'}.get(m.role, m.role | title) ~ ':\\n' ~ m.content ~ '\\n\\n' }}{% endfor %}{{ '### Response:\\n' if add_generation_prompt }}"
VICUNA = "{% set sep = [' ', eos_token] %}{% for m in messages %}{{ m['role'].upper() ~ ': ' ~ m['content'] ~ sep[loop.index0 % 2] }}{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"

TEMPLATES = {name.lower(): value for name, value in list(globals().items()) if name.isupper() and isinstance(value, str)}
