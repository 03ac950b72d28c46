/* Find the records of a block of log lines and their parts, without decoding them.
 *
 * Most lines differ from an earlier line, of this log or another, in digits only. That line is
 * remembered with the offsets of its parts, which are valid for the new line too. Only a line that
 * is unlike all remembered ones is examined. Whether it is valid JSON is not checked here: the
 * caller decodes it. This proves the lines like it as well, as long as none of their numbers has a
 * leading zero.
 *
 * A function that returns 0 or NULL has set an exception or met a line that is not plain (see
 * Scanner in block.py); the block is then read line by line.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#define START ":::MLLOG {" /* the token and the first byte of a record */
#define START_SIZE 10
#define TOKEN_SIZE 9
#define TIME_NAME "\"time_ms\""
#define ALMOST_SIZE 5  /* bytes of the token; a line without these has no record, nor an old one */
#define LONG_LINE 1200 /* on a shorter line, Python's json refuses no number and no nesting */
#define LONG_TIME 18   /* a time of more characters may be out of range */
#define NUMBERS 16     /* the most numbers in a line that is remembered */
#define KIND_BITS 13   /* two to this power is the number of kinds of lines remembered */
#define MEMORY "mlperf_pkg.log._scan.memory"
#define REPEAT(byte) (UINT64_C(0x0101010101010101) * (byte))
#define MIX UINT64_C(0x9e3779b97f4a7c15)

/* As in block.py. The whole record takes the slot of the key, once the key has been found; the rest
 * is all of it but the time. */
enum { TIME, VALUE, METADATA, KEY, PARTS, RECORD = KEY, REST = PARTS };

typedef struct {
    uint32_t start, end;
} Part;

/* A plain line with the offsets of its key and its parts. */
typedef struct Line {
    const char *text;
    Py_ssize_t size, key, key_end;
    Part parts[PARTS];
    uint16_t numbers[NUMBERS]; /* offsets of those with two digits or more before any point */
    int count;                 /* of such numbers; only the first NUMBERS are noted */
    int repeats;               /* whether later lines are compared with it */
    PyObject *owner;           /* of its text and its key */
    PyObject *key_text;        /* borrowed from the owner */
    PyObject *indexes;         /* of its key; borrowed from the last scan that met the line */
    uint64_t scan;             /* the number of that scan */
    uint64_t first_scan;       /* the number of the scan that remembered the line */
    struct Line *next;         /* the kind of line that followed the last line like this */
} Line;

typedef struct {
    Line before; /* the predecessor of the first line of each text */
    Line kinds[1 << KIND_BITS];
    uint64_t scans;
} Memory;

typedef struct {
    char *start;
    size_t size, room;
} Buffer;

typedef struct {
    Memory *memory;
    const char *text;
    PyObject *indexes; /* of the lines with a token, by key */
    PyObject *samples; /* of these, the first of each kind */
    Line *last;        /* the kind of the line before */
    Buffer spans;      /* of each line's parts, as offsets in the text */
    Buffer unproven;   /* the records of lines unlike all remembered ones */
    Buffer elsewhere;  /* the text of these lines outside their keys */
    Py_ssize_t count;  /* of lines with a token */
    Py_ssize_t new;    /* how many of them are unlike all remembered ones */
    int contiguous;    /* whether every line has a token */
    int stray;         /* whether a line without one names a time */
} Scan;

static int add(Buffer *buffer, const void *bytes, size_t size)
{
    if (buffer->room - buffer->size < size) {
        const size_t room = (buffer->size + size) * 2;
        char *start = PyMem_Realloc(buffer->start, room);
        if (!start) {
            PyErr_NoMemory();
            return 0;
        }
        buffer->start = start;
        buffer->room = room;
    }
    memcpy(buffer->start + buffer->size, bytes, size);
    buffer->size += size;
    return 1;
}

static PyObject *bytes_of(const Buffer *buffer)
{
    return PyBytes_FromStringAndSize(buffer->start, (Py_ssize_t)buffer->size);
}

/* ---- one line --------------------------------------------------------------------------- */

static const char *find(const char *start, const char *end, const char *word, Py_ssize_t size)
{
    for (; (start = memchr(start, *word, end - start)) && end - start >= size; start++)
        if (!memcmp(start, word, (size_t)size))
            return start;
    return NULL;
}

static const char *almost_token(const char *start, const char *end)
{
    return find(start, end, START, ALMOST_SIZE);
}

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

static int part_named(const char *name, size_t size)
{
    static const char *const names[] = {"time_ms", "value", "metadata", "key"};
    int part = TIME;
    while (part < PARTS && (strlen(names[part]) != size || memcmp(name, names[part], size)))
        part++;
    return part;
}

/* Note a number, and return its last digit or point. An exponent may have leading zeros. */
static const char *pass_number(Line *line, const char *at)
{
    const char before = at[-1] == '-' || at[-1] == '+' ? at[-2] : at[-1];
    if (isdigit(at[1]) && before != 'e' && before != 'E' && line->count++ < NUMBERS)
        line->numbers[line->count - 1] = (uint16_t)(at - line->text);
    while (isdigit(at[1]) || at[1] == '.')
        at++;
    return at;
}

/* Find the parts and the numbers of a record; 0 if it is not one, or has a name twice. */
static int find_parts(Line *line, const char *at)
{
    const char *end = line->text + line->size; /* after a brace, so blanks and numbers end before */
    int depth = 0, open = PARTS, seen = 0;
    for (; at < end; at++) {
        if (*at == '"') {
            const char *name = at + 1;
            if (!(at = memchr(name, '"', end - name)))
                return 0;
            const int part = part_named(name, at - name);
            if (part == PARTS)
                continue;
            at = skip_blanks(at + 1);
            if (depth != 1 || open != PARTS || seen >> part & 1 || *at != ':')
                return 0;
            at = skip_blanks(at + 1);
            line->parts[part].start = (uint32_t)(at-- - line->text);
            seen |= 1 << (open = part);
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']' || *at == ',') {
            if (depth == 1 && open != PARTS) {
                line->parts[open].end = (uint32_t)(at - line->text);
                open = PARTS;
            }
            depth -= *at != ',';
        } else if (isdigit(*at)) {
            at = pass_number(line, at);
        }
    }
    return seen == (1 << PARTS) - 1 && open == PARTS;
}

/* Whether a line is plain; if so, find its parts. */
static int examine(Line *line, const char *record)
{
    const char *text = line->text, *end = text + line->size, *token = record - TOKEN_SIZE;
    if (line->size > LONG_LINE || end - token < START_SIZE || end[-1] != '}' ||
        memcmp(token, START, START_SIZE) || memchr(text, '"', token - text) ||
        almost_token(record, end))
        return 0;
    int odd = 0; /* without an early exit, so that the compiler can vectorise the loop */
    for (const char *at = text; at < end; at++)
        odd |= *at == '\\' || *at == '\r' || (unsigned char)*at >= 0x80;
    if (odd || !find_parts(line, record) || text[line->parts[KEY].start] != '"')
        return 0;
    const char *time = text + line->parts[TIME].start, *time_end = text + line->parts[TIME].end;
    line->repeats = line->count <= NUMBERS && time_end - time <= LONG_TIME &&
                    time + strspn(time, "0123456789.") == time_end;
    line->key = line->parts[KEY].start + 1;
    line->key_end = (const char *)memchr(text + line->key, '"', line->size - line->key) - text;
    line->parts[RECORD] = (Part){(uint32_t)(record - text), (uint32_t)line->size};
    return 1;
}

/* ---- lines like others ------------------------------------------------------------------ */

/* Eight bytes, with 0 for each digit. */
static uint64_t outline(const char *at)
{
    uint64_t bytes, digits;
    memcpy(&bytes, at, sizeof bytes);
    digits = bytes ^ REPEAT('0');
    digits = ~(((digits & REPEAT(0x7f)) + REPEAT(0x80 - 10)) | digits) & REPEAT(0x80);
    return bytes & ~((digits >> 7) * 15);
}

static Line *kind_of(Memory *memory, const char *start, const char *end)
{
    uint64_t hash = (uint64_t)(end - start);
    for (; end - start >= 8; start += 8)
        hash = (hash << 7 | hash >> 57) + outline(start) * MIX;
    return &memory->kinds[(hash * MIX) >> (64 - KIND_BITS)];
}

/* Whether a line begins here that differs from a plain line in digits only, outside its key, and
 * without a leading zero in a number. */
static int is_like(const char *start, const char *end, const Line *plain)
{
    const Py_ssize_t size = plain->size;
    if (!plain->repeats || end - start < size || (end - start > size && start[size] != '\n') ||
        memcmp(start + plain->key, plain->text + plain->key, (size_t)(plain->key_end - plain->key)))
        return 0;
    for (Py_ssize_t at = 0; at < size - 8; at += 8)
        if (memcmp(start + at, plain->text + at, 8) &&
            outline(start + at) != outline(plain->text + at))
            return 0;
    if (outline(start + size - 8) != outline(plain->text + size - 8)) /* no record is shorter */
        return 0;
    for (int number = 0; number < plain->count; number++)
        if (start[plain->numbers[number]] == '0')
            return 0;
    return 1;
}

/* The list of indexes of a key, borrowed; a new one for a new key. */
static PyObject *indexes_of(PyObject *indexes, PyObject *key)
{
    PyObject *list = PyDict_GetItemWithError(indexes, key);
    if (!list && !PyErr_Occurred() && (list = PyList_New(0))) {
        const int failed = PyDict_SetItem(indexes, key, list);
        Py_DECREF(list);
        list = failed ? NULL : list;
    }
    return list;
}

/* Append an index to a list, which is NULL if it could not be made; 0 if that fails. */
static int append(PyObject *list, Py_ssize_t number)
{
    PyObject *index = list ? PyLong_FromSsize_t(number) : NULL;
    const int added = index && !PyList_Append(list, index);
    Py_XDECREF(index);
    return added;
}

/* Add a line like a remembered one, and return its end; NULL if that fails. */
static const char *add_line(Scan *scan, const char *start, Line *kind)
{
    Part parts[PARTS];
    const uint32_t offset = (uint32_t)(start - scan->text);
    scan->last->next = kind;
    scan->last = kind;
    if (kind->scan != scan->memory->scans) {
        if (!(kind->indexes = indexes_of(scan->indexes, kind->key_text)))
            return NULL;
        kind->scan = scan->memory->scans;
        if (!append(indexes_of(scan->samples, kind->key_text), scan->count))
            return NULL;
    }
    for (int part = 0; part < PARTS; part++)
        parts[part] = (Part){offset + kind->parts[part].start, offset + kind->parts[part].end};
    const int added = append(kind->indexes, scan->count++);
    return added && add(&scan->spans, parts, sizeof parts) ? start + kind->size : NULL;
}

/* Remember a line unlike all others in place of one of them; 0 if it is not plain. */
static int remember(Scan *scan, const char *start, const char *record, const char *end, Line *kind)
{
    Line line = {.text = start, .size = end - start, .first_scan = scan->memory->scans};
    if (!examine(&line, record))
        return 0;
    const char *key = start + line.key, *key_end = start + line.key_end;
    if (!(line.owner = Py_BuildValue("(y#s#)", start, line.size, key, key_end - key)))
        return 0;
    line.text = PyBytes_AsString(PyTuple_GetItem(line.owner, 0));
    line.key_text = PyTuple_GetItem(line.owner, 1);
    Py_XDECREF(kind->owner);
    *kind = line;
    scan->new++;
    return add(&scan->elsewhere, start, key - start) &&
           add(&scan->elsewhere, key_end, end - key_end) &&
           add(&scan->unproven, record, end - record) && add(&scan->unproven, "\n", 1);
}

/* Add a line with a token, or pass the lines before it; return the end, NULL if it is not plain. */
static const char *add_other(Scan *scan, const char *at, const char *end)
{
    const char *token = almost_token(at, end), *start = token ? token : end + 1;
    while (token && start > at && start[-1] != '\n')
        start--;
    if (start > at) {
        scan->contiguous = 0;
        scan->stray = scan->stray || find(at, start - 1, TIME_NAME, sizeof TIME_NAME - 1);
        return start - 1;
    }
    const char *line_end = memchr(token, '\n', end - token);
    line_end = line_end ? line_end : end;
    Line *kind = kind_of(scan->memory, at, line_end);
    if (!is_like(at, line_end, kind) && !remember(scan, at, token + TOKEN_SIZE, line_end, kind))
        return NULL;
    return add_line(scan, at, kind);
}

static int add_lines(Scan *scan, const char *at, const char *end)
{
    for (; at < end; at++) {
        Line *expected = scan->last->next;
        const int is_expected = expected && is_like(at, end, expected);
        if (!(at = is_expected ? add_line(scan, at, expected) : add_other(scan, at, end)))
            return 0;
    }
    return 1;
}

static PyObject *scan(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_ssize_t size;
    Scan scan = {.contiguous = 1};
    PyObject *capsule, *result = NULL;
    if (!PyArg_ParseTuple(args, "Oy#:scan", &capsule, &scan.text, &size) ||
        !(scan.memory = PyCapsule_GetPointer(capsule, MEMORY)))
        return NULL;
    scan.indexes = PyDict_New();
    scan.samples = PyDict_New();
    scan.memory->scans++;
    scan.last = &scan.memory->before;
    if (scan.indexes && scan.samples && size <= (Py_ssize_t)UINT32_MAX &&
        add_lines(&scan, scan.text, scan.text + size))
        result = Py_BuildValue("(nNNNnOONN)", scan.new, bytes_of(&scan.unproven),
                               bytes_of(&scan.elsewhere), bytes_of(&scan.spans), scan.count,
                               scan.indexes, scan.samples, PyBool_FromLong(scan.contiguous),
                               PyBool_FromLong(scan.stray));
    else if (!PyErr_Occurred())
        result = Py_NewRef(Py_None);
    Py_XDECREF(scan.indexes);
    Py_XDECREF(scan.samples);
    PyMem_Free(scan.spans.start);
    PyMem_Free(scan.unproven.start);
    PyMem_Free(scan.elsewhere.start);
    return result;
}

/* ---- memory ----------------------------------------------------------------------------- */

static void free_memory(PyObject *capsule)
{
    Memory *memory = PyCapsule_GetPointer(capsule, MEMORY);
    for (int kind = 0; kind < 1 << KIND_BITS; kind++)
        Py_XDECREF(memory->kinds[kind].owner);
    PyMem_Free(memory);
}

/* Return an empty memory. */
static PyObject *new_memory(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args))
{
    Memory *memory = PyMem_Calloc(1, sizeof *memory);
    if (!memory)
        return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(memory, MEMORY, free_memory);
    if (!capsule)
        PyMem_Free(memory);
    return capsule;
}

/* Forget the lines that the last scan remembered. */
static PyObject *forget(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    Memory *memory = PyCapsule_GetPointer(capsule, MEMORY);
    if (!memory)
        return NULL;
    for (int kind = 0; kind < 1 << KIND_BITS; kind++)
        if (memory->kinds[kind].owner && memory->kinds[kind].first_scan == memory->scans) {
            Py_DECREF(memory->kinds[kind].owner);
            memory->kinds[kind] = (Line){0}; /* no line is like an empty one */
        }
    return Py_NewRef(Py_None);
}

/* ---- parts of lines --------------------------------------------------------------------- */

/* A part of a line; one beyond any text if there is no such part. */
static Part part_of(const char *spans, Py_ssize_t size, Py_ssize_t line, int part)
{
    Part span = {UINT32_MAX, UINT32_MAX};
    const Py_ssize_t lines = size / (Py_ssize_t)sizeof(Part[PARTS]);
    if (line >= 0 && line < lines && part >= 0 && part < PARTS)
        memcpy(&span, spans + (size_t)(line * PARTS + part) * sizeof span, sizeof span);
    return span;
}

/* Add what is between two offsets of a text; 0 if that fails. */
static int add_between(Buffer *buffer, const char *text, Py_ssize_t size, Part span)
{
    if (span.start <= span.end && span.end <= (size_t)size)
        return add(buffer, text + span.start, span.end - span.start);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_IndexError, "no such line, or no such part of it");
    return 0;
}

/* Return a part of the lines at some indexes as a JSON array; the rest is not JSON. */
static PyObject *cut(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *text, *spans;
    Py_ssize_t size, spans_size;
    PyObject *indexes, *index, *result = NULL;
    Buffer array = {NULL, 0, 0};
    int part;
    if (!PyArg_ParseTuple(args, "y#y#iO:cut", &text, &size, &spans, &spans_size, &part, &indexes) ||
        !(indexes = PyObject_GetIter(indexes)))
        return NULL;
    int added = add(&array, "[", 1);
    while (added && (index = PyIter_Next(indexes))) {
        const Py_ssize_t line = PyLong_AsSsize_t(index);
        Part span = part_of(spans, spans_size, line, part == REST ? RECORD : part);
        Py_DECREF(index);
        added = array.size == 1 || add(&array, ",", 1);
        if (part == REST) {
            const Part time = part_of(spans, spans_size, line, TIME);
            added = added && add_between(&array, text, size, (Part){span.start, time.start});
            span.start = time.end;
        }
        added = added && add_between(&array, text, size, span);
    }
    if (added && !PyErr_Occurred() && add(&array, "]", 1))
        result = bytes_of(&array);
    Py_DECREF(indexes);
    PyMem_Free(array.start);
    return result;
}

/* Whether no time of the lines at some indexes is before the one just before it or, with from_first,
 * before the first one. They are compared as text, which decides whole numbers of one length; where a
 * time is another number, the answer is no. */
static PyObject *ascend(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *text, *spans, *last = NULL;
    Py_ssize_t size, spans_size, digits = 0;
    PyObject *indexes, *index;
    int from_first;
    if (!PyArg_ParseTuple(args, "y#y#Op:ascend", &text, &size, &spans, &spans_size, &indexes,
                          &from_first) ||
        !(indexes = PyObject_GetIter(indexes)))
        return NULL;
    int does = 1;
    while (does && (index = PyIter_Next(indexes))) {
        const Part time = part_of(spans, spans_size, PyLong_AsSsize_t(index), TIME);
        Py_DECREF(index);
        if (!(does = time.start < time.end && time.end <= (size_t)size))
            break;
        const char *start = text + time.start, *end = text + time.end;
        digits = last ? digits : end - start;
        does = end - start == digits && (!last || memcmp(last, start, (size_t)digits) <= 0);
        for (const char *at = start; does && at < end; at++)
            does = isdigit((unsigned char)*at) != 0;
        last = from_first && last ? last : start;
    }
    Py_DECREF(indexes);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(does);
}

static PyMethodDef methods[] = {
    {"memory", new_memory, METH_NOARGS, NULL},
    {"scan", scan, METH_VARARGS, NULL},
    {"forget", forget, METH_O, NULL},
    {"cut", cut, METH_VARARGS, NULL},
    {"ascend", ascend, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "mlperf_pkg.log._scan", .m_methods = methods, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__scan(void)
{
    return PyModuleDef_Init(&definition);
}
