"""Small templates, one construct each, for make_jinja_golden.py. All of them are our own."""

CONTEXT = {
    "n": 7,
    "neg": -7,
    "x": 2.5,
    "t": True,
    "f": False,
    "none_value": None,
    "s": "  Hello, World  ",
    "word": "chat",
    "multi": "one\ntwo\n\nthree\r\nfour",
    "uni": "héllo 안녕 😀 straße ΟΔΟΣ",
    "quotes": "it's \"so\"",
    "empty": "",
    "xs": [3, 1, 2, 3],
    "words": ["pear", "Apple", "fig", "apple"],
    "nested": [[1, 2], [3, [4]]],
    "d": {"b": 2, "a": 1, "items": "hidden", "c": None, "Z": [1]},
    "people": [
        {"name": "Ann", "age": 31, "city": {"name": "Oslo"}},
        {"name": "bob", "age": 25, "city": {"name": "Rome"}},
        {"name": "Cid", "age": 31, "active": True},
    ],
    "floats": [1.0, 0.1, 1e16, 123456789012345.6, 1e-5, 0.0001, -0.0, 1e22, 3.14159, 5e-324],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello!"},
    ],
}

# Rendered as {{ expression }}, one a line; some are wrong on purpose.
EXPRESSIONS = r"""
n + 1
n - 10
n * x
n / 2
n // 2
neg // 2
n % 4
neg % 4
n % -4
neg % -4
-7.5 % 2
7.5 // -2
2 ** 10
2 ** -1
-2 ** 2
1 + 2 * 3 - 4 / 2
(1 + 2) * 3
10 // 3 * 3 + 10 % 3
t + t
n / 0
n // 0
n % 0
1.5 % 0
-n
+n
- - n
-x
n - -1
"a" + "b"
"a" ~ 1 ~ none ~ true
"ab" * 3
3 * "ab"
"ab" * 0
"ab" * -1
[1] + [2]
[1, 2] * 2
(1, 2) + (3,)
"a" + 1
1 + "a"
[1] + (2,)
"~ binds" ~ 1 + 2
1 ~ 2 * 3
"x" "y" 'z'
"tab\tnew\nuni\u00e9\x41\101\q"
'it\'s'
"q\"q"
"\U0001F600"
n == 7
n == 7.0
t == 1
"a" == "a"
"a" == 1
none == none
[1, 2] == [1, 2]
[1] == (1,)
{"a": 1} == {"a": 1.0}
n != 7
1 < 2 < 3
3 > 2 > 2
1 < 3 > 2
"a" < "b"
"B" < "a"
[1, 2] < [1, 3]
(1,) < (1, 0)
1 < "a"
none < 1
n <= 7
n >= 8
1 == 1 == 1
true < 2
"ell" in s
"x" in "abc"
3 in xs
9 not in xs
"a" in d
"q" not in d
1 in "a"
n in 5
"" in "abc"
none in [none]
2 in range(3)
"a" in d.keys()
1 in d.values()
("a", 1) in d.items()
not n
not none
not ""
not not n
n and "yes"
0 or "no"
none or 0 or ""
n and 0 and x
not n == 8
"yes" if n > 3 else "no"
"yes" if n > 30
"a" if f else "b" if f else "c"
("a" if t) ~ "!"
[1 if t else 2, 3]
[]
[1, "a", none, true, 2.5]
[1,]
()
(1,)
(1, 2)
{}
{"a": 1, 2: "b", none: true}
{"k": [1, {"z": "q"}]}
1, 2
{"a": 1, "a": 2}
[[], [[]], {}]
{1: "x", 1.0: "y", true: "z"}
true
True
false
none
None
1.0
1e3
1_000
0x1F
0b101
0o17
1.5e-7
100000000000000000.0
floats
xs
d
quotes
[quotes]
[multi]
[uni]
["\x00\x1f\x7f\u200b"]
[""]
nested
people
undefined_name
undefined_name.attr
undefined_name[0]
undefined_name + 1
undefined_name ~ "x"
undefined_name()
d.missing | d["missing"]
d.missing.deeper
n.foo
none_value.foo
none_value["foo"]
xs.foo
xs[99]
xs["a"]
undefined_name == other_undefined
undefined_name == none
undefined_name < 1
undefined_name in [1]
1 in undefined_name
undefined_name[1:]
-undefined_name
not undefined_name
undefined_name | length
[undefined_name]
undefined_name is defined
xs[0]
xs[-1]
xs[-5]
xs[1:]
xs[:-1]
xs[::-1]
xs[::2]
xs[3:0:-1]
xs[-2:]
xs[5:]
xs[1:2]
xs[:100]
xs[-100:2]
word[0]
word[-1]
word[1:3]
word[::-1]
uni[1]
uni[6:8]
uni[::-1]
word[10]
word[10:]
xs[:]
xs[::0]
n[1:] | d[1:]
none_value[1:]
xs["a":]
(1, 2, 3)[1:]
range(10)[2:8:2]
range(5)[::-1]
range(3)[1]
nested[1][1][0]
nested.1.0
people[0].city.name | d["b"]
d.a | d["items"]
xs[true]
"abc"[1]
xs[1.5] | d[1] | d[none] | d[[1]]
d.items()
d.keys()
d.values()
d.items() | list
d.get("a")
d.get("q")
d.get("q", 5)
d.get("c", 5)
d.copy()
d.pop("a")
d.update({})
d.pop is defined
xs.append(1)
xs.append is defined
xs.count(3)
xs.index(2)
xs.index(99)
(1, 1).count(1)
d.items | d["get"]("b")
d.get()
d.get("a", "b", "c")
d.items() | length
d.keys()[0]
d.items(1)
"a-b-c".split("-")
"a-b-c".split("-", 1)
"a-b-c".rsplit("-", 1)
"a b  c".split()
" a b ".split()
" a b c ".split(None, 1)
"a,b".split(",", maxsplit=1)
"".split()
"".split(",")
"abc".split("")
" x  y z ".rsplit(None, 1)
"a--b".split("--")[-1]
"x".split(",")[0]
"</think>a</think>b".split("</think>")[-1].lstrip("\n")
s.strip()
s.lstrip()
s.rstrip()
"xxaxx".strip("x")
"xyaxy".lstrip("yx")
"a\n".rstrip("\n")
"abc".strip("")
s.strip(none)
"  é ".strip()
word.upper()
word.title()
word.capitalize()
uni.upper()
uni.lower()
uni.title()
uni.capitalize()
"they're bill's".title()
word.startswith("ch")
word.endswith("at")
word.startswith(("x", "c"))
word.startswith("h", 1)
word.endswith("a", 0, 3)
word.startswith("")
word.startswith("", 9)
word.startswith(1)
word.find("a")
word.find("z")
uni.find("안")
word.rfind("a")
word.index("z")
word.index("t")
word.count("a")
"aaa".count("aa")
"abc".count("")
word.replace("a", "o")
"aaa".replace("a", "b", 2)
"abc".replace("", "-")
"-".join(["a", "b"])
",".join("abc")
",".join([1])
"a\nb\r\nc".splitlines()
"a\nb".splitlines(true)
"abc".isalpha()
"12".isdigit()
"a1".isalnum()
" ".isspace()
"".isalpha()
"Ab".islower()
"AB1".isupper()
"12".islower()
"k=v=w".partition("=")
"k=v=w".rpartition("=")
"kv".partition("=")
"7".zfill(3)
"-7".zfill(4)
"a".ljust(3) ~ "|"
"a".rjust(3, ".")
"abcabc".removeprefix("abc")
"abcabc".removesuffix("bc")
"{} and {}".format(1, "b")
"{1}{0}".format("a", "b")
"{x}".format(x=3)
"{{}}".format()
"{".format()
"{}".format()
word.nosuch()
word.upper(1)
word.append("a")
s | trim
s | trim | length
"xxaxx" | trim("x")
n | trim
word | upper
"ABC" | lower
"hello wORLD foo-bar (baz) [q]" | title
uni | title
"hELLO" | capitalize
uni | upper
uni | capitalize
none_value | upper
undefined_name | trim
words | join(", ")
xs | join
people | join("; ", attribute="name")
"abc" | join("-")
[1, none, true] | join(",")
d | join
n | join
words | length
d | length
uni | length
n | length
none_value | length
(1, 2) | count
missing_one | default("x")
none_value | default("x")
none_value | default("x", true)
"" | d("x", true)
0 | default(5, boolean=true)
missing_one | default
d.q | default([]) | length
xs | first
xs | last
[] | first
[] | last
word | first
word | last
d | first
d | last
n | first
undefined_name | first
xs | list
word | list
d | list
none_value | list
"" | list
people | map(attribute="name") | list
people | map(attribute="city.name") | list
people | map(attribute="active", default=false) | list
words | map("upper") | list
words | map("replace", "p", "P") | list
xs | map("string") | join("/")
people | map(attribute="city") | map(attribute="name") | list
nested | map(attribute=0) | list
nested | map(attribute="1") | list
words | map("nosuchfilter") | list
words | map | list
words | map("length") | sum
xs | select | list
xs | select("odd") | list
xs | select("gt", 1) | list
xs | reject("equalto", 3) | list
people | selectattr("age", "equalto", 31) | map(attribute="name") | list
people | selectattr("active") | list | length
people | selectattr("active", "defined") | list | length
people | rejectattr("age", ">", 30) | list
people | rejectattr("city") | list
messages | selectattr("role", "==", "user") | list
messages | selectattr("role", "in", ["user", "system"]) | list | length
messages | rejectattr("role", "equalto", "system") | first
xs | select("nosuchtest") | list
[0, 1, "", "a", none] | select | list
[0, 1, none] | reject | list
[1, "a"] | select("string") | list
messages | selectattr("role", "eq", "x") | list | first
d | items | list
undefined_name | items | list
n | items | list
d | dictsort
{"b": 1, "A": 2} | dictsort
{"b": 1, "A": 2} | dictsort(true)
{"b": 1, "A": 2} | dictsort(by="value", reverse=true)
d | dictsort(by="x")
word | replace("a", "o")
"aaa" | replace("a", "b", 2)
n | replace("7", "8")
5 | string ~ "!"
none | string
[1] | string
word | string
"42" | int
"4.9" | int
"x" | int
"x" | int(5)
"0x1f" | int(0, 16)
"1f" | int(base=16)
3.9 | int
-3.9 | int
none | int
true | int
" 12 " | int
"1_000" | int
"-5" | int
"" | int
[] | int(3)
"inf" | int
"0b11" | int(0, 2)
"1e3" | int
"4.5" | float
"x" | float
"x" | float(1.5)
3 | float
"1e3" | float
" -2.5 " | float
"nan" | float
"inf" | float
none | float
"1_0.5" | float
-3 | abs
-3.5 | abs
"a" | abs
true | abs
2.5 | round
3.5 | round
2.675 | round(2)
42.55 | round(1, "floor")
42.51 | round(1, "ceil")
5 | round
5 | round(2)
-2.5 | round
2.5 | round | int
"a" | round
1.23456 | round(3)
0.5 | round
1e20 | round
x | round(0, "nosuch")
words | unique | list
[1, 1.0, true, 2] | unique | list
words | unique(true) | list
people | unique(attribute="age") | map(attribute="name") | list
xs | reverse | list
word | reverse
uni | reverse
d | reverse | list
n | reverse
xs | sort
xs | sort(reverse=true)
words | sort
words | sort(case_sensitive=true)
people | sort(attribute="age") | map(attribute="name") | list
people | sort(attribute="age,name", reverse=true) | map(attribute="name") | list
[1, "a"] | sort
[[2, 1], [1, 9]] | sort
d | sort
xs | min
xs | max
words | min
words | max(case_sensitive=true)
[] | min
people | max(attribute="age")
people | min(attribute="name")
xs | sum
[0.5, 1] | sum
people | sum(attribute="age")
xs | sum(start=10)
words | sum
[] | sum
[[1], [2]] | sum(start=[])
xs | batch(2) | list
xs | batch(3, "-") | list
xs | map("string") | length
people | groupby("age")
people | groupby("age") | map(attribute="grouper") | list
people | groupby("city.name", default="?") | map(attribute="0") | list
multi | indent
multi | indent(2, true)
multi | indent(width=2, blank=true)
multi | indent("> ")
n | indent
"a" | indent
"" | indent
"<b>&\"'" | e
"<b>" | escape
"<b>" | safe
("<b>" | safe) ~ "<i>"
"a" | safe | upper
"%s-%d" | format("a", 5)
"%(k)s" | format(k=1)
"%05.2f|%x|%-4s|%+d" % (3.14159, 255, "ab", 5)
"%s" % "a"
"%s %s" % ("a", [1])
"%d" % 3.7
"%d" % "a"
"%s" % (1, 2)
"%s %s" % "a"
"100%%" % ()
"%r" % "a"
"%5s|%-5s|" % ("é", "é")
"%.2s" % "abc"
"%e" % 12345.678
"%g" % 0.0001
d | tojson
d | tojson(indent=2)
xs | tojson
[] | tojson(indent=2)
{} | tojson(indent=4)
{"a": {}} | tojson(indent=1)
uni | tojson
uni | tojson(ensure_ascii=true)
quotes | tojson
multi | tojson
"\x00\x1f\x7f/<>&\u2028" | tojson
floats | tojson
{"b": 1, "a": [1, {"d": 1, "c": 2}]} | tojson(sort_keys=true)
[1, 2, {"a": 3}] | tojson(separators=(",", ":"))
d | tojson(indent=2, separators=(",", ":"))
{1: 2, none: 3, true: 4, 2.5: 5} | tojson
(1, 2) | tojson
none | tojson
true | tojson
n | tojson
undefined_name | tojson
d.items() | tojson
range(2) | tojson
d | tojson(indent="\t")
people | tojson(indent=0)
nested | tojson(indent=2)
"a" | tojson | length
d.get | tojson
{(1, 2): 3} | tojson
{"a": 1, 2: 3} | tojson(sort_keys=true)
xs | map("string") | tojson
d | tojson(true, 2)
n is odd
n is even
n is divisibleby 7
n is divisibleby(3)
n is not odd
n is defined
zz is not defined
zz is undefined
none is none
n is none
none is not none
"a" is string
n is string
n is number
t is number
n is integer
t is integer
x is float
t is boolean
t is true
f is false
1 is true | d is mapping
xs is mapping
xs is sequence | d is sequence
"a" is sequence
n is sequence
zz is sequence
xs is iterable
n is iterable
"a" is iterable | d is iterable
zz is iterable
d.items() is sequence
d.items() is iterable
range(3) is sequence
n is eq 7
n is equalto(7)
n is ne 7
n is lt 8
n is gt(6)
n is le 7
n is ge 8
n is in [7, 8]
"a" is in "abc"
"abc" is lower
"ABC" is upper
"aBC" is upper
"1" is lower
none is sameas none
d.get is callable
n is callable
raise_exception is callable
raise_exception is defined
"upper" is filter
"nosuch" is filter
"odd" is test
"a" is odd
n is eq(7) and t
n is string or t
not n is string
xs[0] is odd
xs is eq [3, 1, 2, 3]
("a" | safe) is escaped
x is even
range(3) | list
range(1, 4) | list
range(5, 0, -2) | list
range(0) | list
range(3)
range(0, 9, 2)
range(1.5)
range(100001)
range(3) | length
range(3) | last
range(0, 3, 0)
dict(a=1, b=2)
dict({"x": 1}, y=2)
dict([("a", 1), ("b", 2)])
dict([1])
namespace(a=1).a
namespace(a=1).b
namespace({"z": 3}).z
namespace(a=1)["a"]
namespace(_a=1)
raise_exception("boom")
raise_exception()
namespace(a=1)
range(3) | sum
range(3) | join("-")
range(3) | sort(reverse=true)
xs | first + 1
(xs | first) + 1
-xs[0]
-x | abs
2 ** 3 ** 2
1 + 1 ~ 1
"a" "b" ~ "c"
(1, 2) | last
[1, 2] | last
"a" if n is odd else "b"
n if n is not none else 3
xs | length > 3
xs | length + 1
not xs | length == 4
word[0] | upper
(word | upper)[0]
word | upper ~ "!"
d.b + xs[1] * 2
"a" in word and n > 3 or f
messages[-1].role == "assistant"
messages[0]["content"] | trim | upper
messages | map(attribute="role") | join(",")
messages[1:] | length
(messages | last).content
messages | last | items | list
xs[0:1:1]
foo(*xs)
"{} {}".format(*["a", "b"])
"{a}".format(**{"a": 1})
dict(**{"a": 1})
range(*[1, 3]) | list
words | sort | first | upper
words | map("upper") | map("lower") | join
[3, 1] | sort | tojson
{"a": [1, 2]}.a[1]
[1, 2, 3][1]
"abc".upper()[1]
{"a": 1}["a"]
(1, 2)[0]
[x, n, word]
"%s" | format(none)
1 if none else 2 if f else 3
1 is string is number
5
nosuch
"a" is nosuch
a b
1 +
(1
[1
{1}
{1: }
| x
x
| 1 **
not
"abc
n..a
f(1, a=1, 2)
f(a=1, a=2)
f(**d, **d)
5.a
@
!
'a' & 'b'
a = 1
1 <> 2
x if
in xs
lambda x: x
]
"3" | int + 1
"b" < "á"
"Z" | lower < "b"
"é" | tojson(ensure_ascii=true)
"ﬁ" | upper
"ﬁx" | capitalize
"ǆ" | title
"İ" | lower
"ΣΑΣ" | lower
"ᾳ" | upper
"ŉ" | upper
"ΐ" | capitalize
1 if undefined_name
none | map("upper") | list
[] | map | list
0 | select | list
"42" % [1]
"a" % xs
"%s" % xs
"a" % undefined_name
"a" % {"b": 1}
"a" % (1,)
xs | join(d="-")
xs | join(sep="-")
s | trim(chars=" H")
xs | first(1)
word | upper(x=1)
word | replace("a")
word | replace
d | items(1)
"7" | int(default=3, base=8)
xs | batch
5 | default(1, 2, 3)
1.0 | string
1.5 | int | string
5 | nosuch
5 | nosuch(1)
x |
| x
""
xs | map("int") | sum
uni | length > 3 and n
"a" is nosuch(1)
"""

# (name, template); rendered with CONTEXT.
STATEMENTS = [
    ("for", "{% for x in xs %}{{ loop.index }}:{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}"),
    ("for all loop attributes", "{% for x in xs %}[{{ loop.index }} {{ loop.index0 }} {{ loop.revindex }} {{ loop.revindex0 }} {{ loop.first }} {{ loop.last }} {{ loop.length }} {{ loop.depth }} {{ loop.depth0 }} {{ loop.previtem }} {{ loop.nextitem }} {{ loop.nope }}]{% endfor %}"),
    ("for cycle", "{% for x in xs %}{{ loop.cycle('odd', 'even') }} {% endfor %}"),
    ("for changed", "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }} {% endfor %}"),
    ("for filter", "{% for x in xs if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% endfor %}"),
    ("for filter last", "{% for x in xs if x != 3 %}{{ x }}{{ '' if loop.last else ',' }}{% endfor %}"),
    ("for filter next", "{% for x in xs if x != 1 %}{{ x }}<{{ loop.nextitem }}>{% endfor %}"),
    ("for filter is lazy", "{% set ns = namespace(stop=false) %}{% for x in xs if not ns.stop %}{{ x }}{% if x == 1 %}{% set ns.stop = true %}{% endif %}{% endfor %}"),
    ("for filter is lazy with loop", "{% set ns = namespace(stop=false) %}{% for x in xs if not ns.stop %}{{ loop.index }}{% if loop.last %}!{% endif %}{% if x == 1 %}{% set ns.stop = true %}{% endif %}{% endfor %}"),
    ("for else", "{% for x in [] %}a{% else %}none{% endfor %}{% for x in xs %}{{ x }}{% else %}none{% endfor %}"),
    ("for filter else", "{% for x in xs if x > 9 %}a{% else %}none{% endfor %}"),
    ("for break", "{% for x in xs %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% else %}no{% endfor %}"),
    ("for else after continue", "{% for x in xs %}{% continue %}{% else %}else{% endfor %}"),
    ("for else after break", "{% for x in xs %}{% break %}{% else %}else{% endfor %}{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{% else %}else{% endfor %}"),
    ("for continue", "{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}"),
    ("break outside", "{% break %}"),
    ("break in macro in loop", "{% for x in xs %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}"),
    ("break in generation in loop", "{% for x in xs %}{% generation %}{% break %}{% endgeneration %}{% endfor %}"),
    ("break in with in loop", "{% for x in xs %}{% with y = x %}{{ y }}{% break %}{% endwith %}{% endfor %}"),
    ("break in inner loop", "{% for x in [1, 2] %}{% for y in [1, 2] %}{% break %}{% endfor %}{{ x }}{% endfor %}"),
    ("break in for else", "{% for x in [] %}{% else %}{% break %}{% endfor %}"),
    ("nested loops", "{% for r in nested %}{% set outer = loop %}{% for c in r %}{{ outer.index }}.{{ loop.index }}={{ c }} {% endfor %}{% endfor %}"),
    ("for unpack", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}"),
    ("for unpack nested", "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}"),
    ("for unpack parentheses", "{% for (a, b) in [[1, 2]] %}{{ a }}{{ b }}{% endfor %}"),
    ("for unpack wrong", "{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}"),
    ("for unpack too few", "{% for a, b in [[1]] %}{{ a }}{% endfor %}"),
    ("for over text", "{% for c in uni %}[{{ c }}]{% endfor %}"),
    ("for over dict", "{% for k in d %}{{ k }} {% endfor %}"),
    ("for over undefined", "{% for k in zzz %}{{ k }} {% else %}empty{% endfor %}"),
    ("for over none", "{% for k in none_value %}{{ k }}{% endfor %}"),
    ("for over int", "{% for k in n %}{{ k }}{% endfor %}"),
    ("for over method", "{% for k in d.items %}{{ k }}{% endfor %}"),
    ("for over tuple", "{% for k in 1, 2, 3 %}{{ k }}{% endfor %}"),
    ("for over range", "{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(0) %}x{% endfor %}"),
    ("for over generator twice", "{% set g = xs | map('string') %}{% for a in g %}{{ a }}{% endfor %}{% for a in g %}{{ a }}{% else %}gone{% endfor %}"),
    ("generator length", "{{ xs | map('string') | length }}"),
    ("generator last", "{{ xs | select | last }}"),
    ("generator first twice", "{% set g = xs | select %}{{ g | first }}{{ g | first }}{{ g | list }}"),
    ("generator in", "{% set g = xs | select %}{{ 1 in g }}{{ g | list }}"),
    ("generator truth", "{{ 'yes' if [] | select else 'no' }}"),
    ("generator index", "{{ (xs | select)[0] }}|{{ (xs | select) is iterable }}|{{ (xs | select) is sequence }}"),
    ("loop outside", "{{ loop }}{{ loop is defined }}"),
    ("loop length of view", "{% for k, v in d | items %}{{ loop.length }}{% endfor %}"),
    ("loop as argument", "{% macro m(l) %}{{ l.index }}{% endmacro %}{% for x in xs %}{{ m(loop) }}{% endfor %}"),
    ("if chain", "{% if f %}a{% elif n == 8 %}b{% elif t %}c{% else %}d{% endif %}{% if f %}a{% endif %}{% if f %}{% else %}e{% endif %}"),
    ("if tuple", "{% if 1, %}a{% endif %}"),
    ("if needs condition", "{% if %}a{% endif %}"),
    ("set", "{% set a = 1 %}{{ a }}{% set a = a + 1 %}{{ a }}"),
    ("set tuple", "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c }}{{ d }}{% set e = 1, 2 %}{{ e }}"),
    ("set wrong count", "{% set a, b = 1, 2, 3 %}"),
    ("set constant", "{% set true = 1 %}"),
    ("set subscript", "{% set d['a'] = 1 %}"),
    ("set attribute of dict", "{% set d.a = 1 %}{{ d.a }}"),
    ("set block", "{% set a %}x{{ n }}y{% endset %}[{{ a }}]{{ a | length }}"),
    ("set block filter", "{% set a | upper | trim %} x{{ word }} {% endset %}[{{ a }}]"),
    ("set block filter arguments", "{% set a | replace('x', 'y') %}xx{% endset %}[{{ a }}]"),
    ("set block namespace", "{% set ns = namespace() %}{% set ns.a %}q{% endset %}{{ ns.a }}"),
    ("set block scope", "{% set a %}{% set inner = 1 %}{{ inner }}{% endset %}{{ a }}{{ inner is defined }}"),
    ("scope of for", "{% set a = 0 %}{% for x in xs %}{% set a = a + x %}{{ a }} {% endfor %}{{ a }}"),
    ("scope of for is fresh", "{% for x in xs %}{{ seen is defined }}{% set seen = x %}{% endfor %}"),
    ("scope of if", "{% if t %}{% set a = 1 %}{% endif %}{{ a }}"),
    ("scope of if in for", "{% for x in [1, 2] %}{% if x == 1 %}{% set a = x %}{% endif %}{{ a }}|{% endfor %}"),
    ("scope shadows context", "{% for x in [1] %}{% set word = 'inner' %}{{ word }}{% endfor %}{{ word }}"),
    ("loop variable does not leak", "{% for item in xs %}{% endfor %}{{ item is defined }}"),
    ("namespace", "{% set ns = namespace(total=0) %}{% for x in xs %}{% set ns.total = ns.total + x %}{% endfor %}{{ ns.total }}"),
    ("namespace new attribute", "{% set ns = namespace() %}{% set ns.found = true %}{{ ns.found }}{{ ns.other is defined }}"),
    ("namespace tuple target", "{% set ns = namespace() %}{% set ns.a, b = 1, 2 %}{{ ns.a }}{{ b }}"),
    ("namespace undefined", "{% set zz.a = 1 %}"),
    ("namespace underscore", "{% set ns = namespace() %}{% set ns.a_b = 1 %}{{ ns.a_b }}"),
    ("namespace print", "{% set ns = namespace(a=1, b='x') %}{{ ns }}"),
    ("namespace truth", "{{ 'y' if namespace() else 'n' }}"),
    ("namespace keeps lists", "{% set ns = namespace(l=[]) %}{% for x in xs %}{% set ns.l = ns.l + [x] %}{% endfor %}{{ ns.l }}"),
    ("macro", "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }}"),
    ("macro missing argument", "{% macro m(a) %}[{{ a }}]{{ a is defined }}{% endmacro %}{{ m() }}"),
    ("macro extra argument", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}"),
    ("macro unknown keyword", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}"),
    ("macro varargs", "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, z=4) }}"),
    ("macro recursion", "{% macro m(k) %}{{ k }}{% if k > 0 %}{{ m(k - 1) }}{% endif %}{% endmacro %}{{ m(4) }}"),
    ("macro default sees argument", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}"),
    ("macro sees later global", "{% macro m() %}{{ later }}{% endmacro %}{{ m() }}{% set later = 1 %}{{ m() }}"),
    ("macro sees context", "{% macro m() %}{{ word }}{% endmacro %}{{ m() }}"),
    ("macro scope", "{% macro m() %}{% set a = 1 %}{{ a }}{% endmacro %}{{ m() }}{{ a is defined }}"),
    ("macro result is text", "{% macro m() %} 5 {% endmacro %}{{ m() | trim | int + 1 }}{{ m() is string }}"),
    ("macro trailing default", "{% macro m(a=1, b) %}{% endmacro %}"),
    ("macro print", "{% macro m() %}{% endmacro %}{{ m is callable }}{{ m is defined }}{{ m is string }}"),
    ("macro none default", "{% macro m(a=none) %}{{ a is none }}{% endmacro %}{{ m() }}{{ m(1) }}{{ m(a=none) }}"),
    ("macro in for", "{% for x in xs %}{% macro m() %}<{{ x }}>{% endmacro %}{{ m() }}{% endfor %}"),
    ("macro before definition", "{{ m() }}{% macro m() %}x{% endmacro %}"),
    ("macro in if", "{% if t %}{% macro m() %}x{% endmacro %}{% endif %}{{ m() }}"),
    ("macro nested", "{% macro a() %}{% macro b() %}in{% endmacro %}{{ b() }}{% endmacro %}{{ a() }}"),
    ("call", "{% macro box() %}[{{ caller() }}]{% endmacro %}{% call box() %}in {{ n }}{% endcall %}"),
    ("call with arguments", "{% macro each(l) %}{% for x in l %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(v) each(xs) %}<{{ v }}>{% endcall %}"),
    ("call without caller", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}"),
    ("caller undefined", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}"),
    ("caller as parameter", "{% macro m(caller=none) %}{{ caller() if caller }}{% endmacro %}{{ m() }}{% call m() %}y{% endcall %}"),
    ("call needs call", "{% call n %}{% endcall %}"),
    ("filter block", "{% filter upper %}a{{ word }}{% endfilter %}"),
    ("filter block chain", "{% filter trim | replace('a', 'b') %}  aa {% endfilter %}|"),
    ("with", "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}"),
    ("with sees outside", "{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}"),
    ("with empty", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}"),
    ("generation", "{% generation %}{{ word }}{% set q = 1 %}{% endgeneration %}{{ q is defined }}"),
    ("generation trims", "a\n  {% generation %}\n  b\n  {%- endgeneration %}\n c"),
    ("print", "{% print n, word %}"),
    ("print empty", "{{ }}"),
    ("raw", "{% raw %}{{ n }}{% if %}{% endraw %}!"),
    ("raw trims", "a\n  {%- raw -%}\n  {{ x }}\n  {%- endraw -%}\n b"),
    ("raw newline", "{% raw %}\n a\n  {% endraw %}\nb"),
    ("raw open", "{% raw %}a"),
    ("comment", "a{# x {{ y }} {% z %} #}b"),
    ("comment trims", "a\n  {# x #}\nb  {#- y -#}  c {#+ z +#}\n d"),
    ("comment open", "a{# b"),
    ("comment lines", "{# one\ntwo #}\n{{ n }"),
    ("trim_blocks", "{% if t %}\nA\n{% endif %}\nB\n"),
    ("lstrip_blocks", "  {% if t %}\n  A\n  {% endif %}\n  B"),
    ("lstrip only whitespace", " x {% if t %} y {% endif %} z"),
    ("lstrip not for print", "  {{ n }}\n  {{ n }}\n"),
    ("plus keeps", "  {%+ if t %}A{% endif +%}\nB"),
    ("minus strips", "a \n {%- if t -%} \n b \n {%- endif -%} \n c {{- n -}} \n d"),
    ("minus at both ends", "{{- n -}}  \n {%- set a = 1 -%}  x"),
    ("two newlines", "{% if t %}\n\nA{% endif %}\n\n"),
    ("carriage returns", "a\r\n{% if t %}\r\nb\r{% endif %}\r\nc\r\n"),
    ("trailing newline", "a\n"),
    ("trailing newlines", "a\n\n"),
    ("only newline", "\n"),
    ("empty", ""),
    ("tabs", "\t{% if t %}\t\n\tx\t{% endif %}"),
    ("block after block on a line", "{% if t %}{% if t %}\nx\n    {% endif %}    {% endif %}\ny"),
    ("block after comment on a line", "{# c #}\n    {% if t %}x{% endif %}"),
    ("tag without spaces", "{%if t%}{{n}}{%endif%}{%-if t-%}{{-n-}}{%-endif-%}"),
    ("braces in text", "{ n } {a} }} %} #} {"),
    ("dict at print end", "{{ {'a': {'b': 1}}['a']['b'] }}{{ {'a': {}} }}"),
    ("percent brace in expression", "{{ '%}' }}{% set a = '}}' %}{{ a }}"),
    ("newlines in tags", "{{\n  n\n  +\n  1\n}}{%\nset a\n=\n2\n%}{{ a }}"),
    ("colon", "{% if t: %}a{% else: %}b{% endif %}{% for x in xs: %}{{ x }}{% endfor %}"),
    ("unknown tag", "{% nosuch %}"),
    ("tag missing", "{% %}"),
    ("open if", "{% if t %}a"),
    ("open for", "{% for x in xs %}a"),
    ("wrong end", "{% if t %}a{% endfor %}"),
    ("stray end", "a{% endif %}"),
    ("stray else", "{% else %}"),
    ("open print", "{{ n"),
    ("open print at brace", "{{ n }"),
    ("open block", "{% if t"),
    ("bracket mismatch", "{{ (n] }}"),
    ("elif after else", "{% if t %}{% else %}{% elif n %}{% endif %}"),
    ("string with newline", "{{ 'a\nb' }}|{{ 'a\\\nb' }}"),
    ("string open", "{{ 'a }}"),
    ("bad escape", "{{ '\\xZZ' }}"),
    ("bad escape u", "{{ '\\u12' }}"),
    ("cycler", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }}"),
    ("joiner", "{% set j = joiner('|') %}{% for x in xs %}{{ j() }}{{ x }}{% endfor %}"),
    ("do is not enabled", "{% do xs %}"),
    ("groupby loop", "{% for g in people | groupby('age') %}{{ g.grouper }}:{% for p in g.list %}{{ p.name }} {% endfor %}{% endfor %}"),
    ("groupby unpack", "{% for age, group in people | groupby('age') %}{{ age }}={{ group | length }} {% endfor %}"),
    ("attribute of value named like method", "{{ d.items is defined }}{{ d.items is callable }}{{ d['items'] }}{{ d.get('items') }}"),
    ("unicode names", "{% set größe = 3 %}{{ größe }}"),
    ("name shadows builtin", "{% set range = 5 %}{{ range }}{% set dict = 'x' %}{{ dict }}"),
    ("loop is restored", "{% for a in [1] %}{% for b in [1, 2] %}{% endfor %}{{ loop.length }}{% endfor %}"),
    ("loop in else", "{% for a in [1] %}{% for b in [] %}{% else %}{{ loop.length }}{% endfor %}{% endfor %}"),
    ("string multiplication in loop", "{% for i in range(4) %}{{ ' ' * i }}{{ i }}\n{% endfor %}"),
    ("raise in branch not taken", "{% if f %}{{ raise_exception('no') }}{% endif %}ok"),
    ("raise", "{{ raise_exception('Roles must alternate ' ~ n) }}"),
    ("undefined in condition", "{% if zz %}a{% else %}b{% endif %}{% if zz is defined and zz.a %}a{% endif %}"),
    ("undefined attribute chain", "{% if d.q.r %}a{% endif %}"),
    ("text after everything", "{% if t -%}   a   {%- endif %}   b   "),
]


def whitespace_cases():
    """Every pair of signs at a tag's ends, with spaces and newlines around it."""
    out = []
    for before in ["x", " ", "\n", "x \n  ", "\n\n "]:
        for after in ["y", " y", "\n y", " \n\n y"]:
            for left in ["", "-", "+"]:
                for right in ["", "-", "+"]:
                    template = f"{before}{{%{left} if t {right}%}}{after}{before}{{#{left} c {right}#}}{after}{before}{{%{left} endif {right}%}}{after}"
                    out.append(("whitespace", template, [{"t": True}]))
                    if right != "+":
                        out.append(("whitespace", f"{before}{{{{{left} 5 {right}}}}}{after}", [{}]))
    return out


def cases():
    """(name, template, contexts) of all snippets."""
    out = []
    for expression in EXPRESSIONS.strip().split("\n"):
        out.append(("expression", "{{ " + expression + " }}", [CONTEXT]))
    out += [(name, template, [CONTEXT]) for name, template in STATEMENTS]
    return out + whitespace_cases()

