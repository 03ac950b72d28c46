/* What mlperf_pkg/plain.py finds out about a block of lines without it, many times as fast.
 *
 * Most lines differ from one before, of this log or another, in nothing but digits. What was found
 * out about that one, which is remembered, holds for them, as nothing that is looked for has digits.
 * That its text is one record is left to a JSON decoder, and holds for them too where no number of
 * theirs begins with a needless zero. A function that returns 0 or NULL has either set an exception
 * or come upon a line that is not plain.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

#define RECORD ":::MLLOG {" /* the token, and how a record begins */
#define RECORD_SIZE 10
#define TOKEN_SIZE 9
#define ALMOST_SIZE 6  /* bytes of it that make a line count */
#define LONG_LINE 1200 /* as in plain.py */
#define LONG_TIME 18   /* a number of more digits may be no time */
#define NUMBERS 16     /* of a line that others are compared with */
#define WORDS 16       /* that can be looked for */
#define KIND_BITS 10   /* of the number of kinds of lines that are remembered */
#define MEMORY "mlperf_pkg.log._scan.memory"
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
#define MIX UINT64_C(0x9e3779b97f4a7c15)

/* As in plain.py: once the key is found, the record itself takes its place. */
enum { TIME, VALUE, METADATA, KEY, PARTS, ITSELF = KEY };

typedef struct {
    uint32_t start, end;
} Part;

/* A plain line, and where on it its token, its key and its parts stand. */
typedef struct Line {
    char *text;
    Py_ssize_t size, token, key, key_end;
    Part parts[PARTS];
    uint16_t numbers[NUMBERS]; /* that have two digits at least, before any point */
    int count, unique;         /* of numbers; whether no other line is taken to be alike */
    int holds_word;            /* but in its key */
    PyObject *key_text;        /* owned, as is the text of a line that is remembered */
    PyObject *places;          /* of its key, borrowed from the last scan that met it */
    uint64_t scan;             /* the number of that */
    struct Line *next;         /* what came after the last line alike */
} Line;

/* A word that is looked for by its first underscore, as there are few of them. */
typedef struct {
    char *start;
    Py_ssize_t size, underscore;
} Word;

typedef struct {
    Line kinds[1 << KIND_BITS];
    PyObject *words_object;
    Word words[WORDS + 1]; /* one of no size is the last */
    uint64_t scans;
} Memory;

typedef struct {
    char *start;
    size_t size, room;
} Buffer;

typedef struct {
    Memory *memory;
    const char *text;
    PyObject *places;
    Line *first, **next;   /* the line expected first, and where the next one stands */
    Buffer parts;          /* of each line, from the start of the text */
    Buffer closer;         /* what follows the tokens of lines that are alike none before */
    Py_ssize_t count, new; /* lines that count, and of these others */
    int every, scattered;
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

static const char *find(const char *start, const char *end, char byte)
{
    return start < end ? memchr(start, byte, (size_t)(end - start)) : NULL;
}

static const char *almost_token(const char *start, const char *end)
{
    for (; (start = find(start, end, *RECORD)) && end - start >= ALMOST_SIZE; start++)
        if (!memcmp(start, RECORD, ALMOST_SIZE))
            return start;
    return NULL;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

static int is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static int part_named(const char *name, size_t size)
{
    static const char *const names[] = {"time_ms", "value", "metadata", "key"};
    int part = TIME;
    while (part < PARTS && (strlen(names[part]) != size || memcmp(name, names[part], size)))
        part++;
    return part;
}

/* The last byte of a number before any exponent, or of one, in which no zero is needless. */
static const char *pass_number(Line *line, const char *at)
{
    const char before = at[-1] == '-' || at[-1] == '+' ? at[-2] : at[-1];
    if (is_digit(at[1]) && before != 'e' && before != 'E') {
        if (line->count == NUMBERS)
            line->unique = 1;
        else
            line->numbers[line->count++] = (uint16_t)(at - line->text);
    }
    while (is_digit(at[1]) || at[1] == '.')
        at++;
    return at;
}

/* Find the parts and the numbers of a record; 0 if its text is none, or has a name twice. */
static int walk(Line *line)
{
    const char *end = line->text + line->size;
    int depth = 0, open = PARTS, found = 0;
    for (const char *at = line->text + line->token + TOKEN_SIZE; at < end; at++) {
        if (*at == '"') {
            const char *name = at + 1;
            if (!(at = find(name, end, '"')))
                return 0;
            const int part = part_named(name, (size_t)(at - name));
            if (part == PARTS)
                continue;
            at = skip_blanks(at + 1, end);
            if (depth != 1 || open != PARTS || found >> part & 1 || *at != ':')
                return 0;
            at = skip_blanks(at + 1, end);
            line->parts[part].start = (uint32_t)(at-- - line->text);
            found |= 1 << (open = part);
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']' || *at == ',') {
            if (depth == 1 && open != PARTS) {
                line->parts[open].end = (uint32_t)(at - line->text);
                open = PARTS;
            }
            depth -= *at != ',';
        } else if (is_digit(*at)) {
            at = pass_number(line, at);
        }
    }
    return found == (1 << PARTS) - 1 && open == PARTS;
}

/* Whether another number of as many digits is a time as well. */
static int is_usual_time(const char *at, const char *end)
{
    if (end - at > LONG_TIME)
        return 0;
    while (at < end && (is_digit(*at) || *at == '.'))
        at++;
    return at == end;
}

/* Whether a line is plain, and where its parts are. */
static int look(Line *line)
{
    const char *text = line->text, *end = text + line->size;
    const char *token = text + line->token, *record = token + TOKEN_SIZE;
    if (line->size > LONG_LINE || end - token < RECORD_SIZE || end[-1] != '}' ||
        memcmp(token, RECORD, RECORD_SIZE) || find(text, token, '"') || almost_token(record, end))
        return 0;
    int odd = 0; /* without a stop at the first, as many bytes are looked at together */
    for (const char *at = text; at < end; at++)
        odd |= *at == '\\' || *at == '\r' || (unsigned char)*at >= 0x80;
    if (odd || !walk(line) || text[line->parts[KEY].start] != '"')
        return 0;
    line->unique |= !is_usual_time(text + line->parts[TIME].start, text + line->parts[TIME].end);
    line->key = line->parts[KEY].start + 1;
    line->key_end = find(text + line->key, end, '"') - text;
    line->parts[ITSELF] = (Part){(uint32_t)(record - text), (uint32_t)line->size};
    return 1;
}

/* ---- words ------------------------------------------------------------------------------ */

static int take_words(Memory *memory, PyObject *words)
{
    const Py_ssize_t count = PyTuple_Size(words);
    if (count > WORDS) {
        PyErr_SetString(PyExc_ValueError, "too many words");
        return 0;
    }
    for (Py_ssize_t index = 0; index < count; index++) {
        Word *word = &memory->words[index];
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(words, index), &word->start, &word->size))
            return 0;
        const char *underscore = find(word->start, word->start + word->size, '_');
        if (!underscore) {
            PyErr_SetString(PyExc_ValueError, "a word without an underscore");
            return 0;
        }
        word->underscore = underscore - word->start;
    }
    return 1;
}

static int holds_word(const Word *words, const char *start, const char *end)
{
    for (const char *at = start; (at = find(at, end, '_')); at++)
        for (const Word *word = words; word->size; word++) {
            const char *first = at - word->underscore;
            if (at - start >= word->underscore && *first == *word->start &&
                end - first >= word->size && !memcmp(first, word->start, (size_t)word->size))
                return 1;
        }
    return 0;
}

/* ---- lines that are alike --------------------------------------------------------------- */

/* Eight bytes, all digits being 0. */
static uint64_t outline(const char *at)
{
    uint64_t bytes, digits;
    memcpy(&bytes, at, sizeof bytes);
    digits = bytes ^ EACH('0');
    digits = ~(((digits & EACH(0x7f)) + EACH(0x80 - 10)) | digits) & EACH(0x80);
    return bytes & ~((digits >> 7) * 15);
}

static Line *kind_of(Memory *memory, const char *start, const char *end)
{
    uint64_t hash = (uint64_t)(end - start);
    for (; end - start >= 8; start += 8)
        hash = (hash << 7 | hash >> 57) + outline(start) * MIX;
    return &memory->kinds[(hash * MIX) >> (64 - KIND_BITS)];
}

/* Whether a line begins here that differs from a plain one in nothing but digits, which make no
 * other key and no number that is none. */
static int alike(const char *start, const char *end, const Line *plain)
{
    const Py_ssize_t size = plain->size;
    if (!size || end - start < size || (end - start > size && start[size] != '\n') ||
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

/* The places of a line's key, borrowed; of a new key an empty list. */
static PyObject *places_of(PyObject *places, PyObject *key)
{
    PyObject *found = PyDict_GetItemWithError(places, key);
    if (!found && !PyErr_Occurred() && (found = PyList_New(0))) {
        const int failed = PyDict_SetItem(places, key, found);
        Py_DECREF(found);
        found = failed ? NULL : found;
    }
    return found;
}

static int add_line(Scan *scan, const char *start, Line *line)
{
    Part parts[PARTS];
    const uint32_t offset = (uint32_t)(start - scan->text);
    if (line->scan != scan->memory->scans) {
        if (!(line->places = places_of(scan->places, line->key_text)))
            return 0;
        line->scan = scan->memory->scans;
        scan->every = scan->every && !line->token;
        scan->scattered = scan->scattered || line->holds_word;
    }
    for (int part = 0; part < PARTS; part++)
        parts[part] = (Part){offset + line->parts[part].start, offset + line->parts[part].end};
    PyObject *place = PyLong_FromSsize_t(scan->count++);
    const int added = place && !PyList_Append(line->places, place);
    Py_XDECREF(place);
    return added && add(&scan->parts, parts, sizeof parts);
}

static int add_alike(Scan *scan, const char *start, Line *kind)
{
    *scan->next = kind;
    scan->next = &kind->next;
    return add_line(scan, start, kind);
}

static void forget(Line *kind)
{
    PyMem_Free(kind->text);
    Py_CLEAR(kind->key_text);
}

/* Keep a copy of a line in the place of another. */
static int remember(Line *kind, const Line *line)
{
    char *text = PyMem_Malloc((size_t)line->size);
    if (!text) {
        PyErr_NoMemory();
        return 0;
    }
    memcpy(text, line->text, (size_t)line->size);
    forget(kind);
    Line *next = kind->next;
    *kind = *line;
    kind->text = text;
    kind->key_text = Py_NewRef(line->key_text);
    kind->next = next;
    return 1;
}

/* Add a line that is alike none. */
static int add_new(Scan *scan, Line *line, Line *kind)
{
    const char *key = line->text + line->key, *key_end = line->text + line->key_end;
    const char *record = line->text + line->token + TOKEN_SIZE, *end = line->text + line->size;
    const Word *words = scan->memory->words;
    line->key_text = PyUnicode_DecodeASCII(key, key_end - key, NULL);
    line->holds_word = holds_word(words, line->text, key) || holds_word(words, key_end, end);
    scan->new++;
    const int added = line->key_text &&
                      add(&scan->closer, record, (size_t)(end - record)) &&
                      add(&scan->closer, "\n", 1) &&
                      (line->unique ? add_line(scan, line->text, line)
                                    : remember(kind, line) && add_alike(scan, line->text, kind));
    Py_XDECREF(line->key_text);
    return added;
}

static int add_other(Scan *scan, const char *start, const char *end)
{
    Line *kind = kind_of(scan->memory, start, end);
    if (alike(start, end, kind))
        return add_alike(scan, start, kind);
    const char *token = almost_token(start, end);
    if (!token) {
        scan->every = 0;
        return 1;
    }
    Line line = {.text = (char *)start, .size = end - start, .token = token - start};
    return look(&line) && add_new(scan, &line, kind);
}

static int add_lines(Scan *scan, const char *at, const char *end)
{
    for (const char *line_end; at < end; at = line_end + 1) {
        Line *expected = *scan->next;
        if (expected && alike(at, end, expected)) {
            line_end = at + expected->size;
            if (!add_alike(scan, at, expected))
                return 0;
        } else {
            line_end = find(at, end, '\n');
            line_end = line_end ? line_end : end;
            if (!add_other(scan, at, line_end))
                return 0;
        }
    }
    return 1;
}

static PyObject *scan(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_ssize_t size;
    Scan scan = {.every = 1};
    PyObject *capsule, *result = NULL;
    if (!PyArg_ParseTuple(args, "Oy#:scan", &capsule, &scan.text, &size) ||
        !(scan.memory = PyCapsule_GetPointer(capsule, MEMORY)) || !(scan.places = PyDict_New()))
        return NULL;
    scan.memory->scans++;
    scan.next = &scan.first;
    if (size <= (Py_ssize_t)UINT32_MAX && add_lines(&scan, scan.text, scan.text + size))
        result = Py_BuildValue("(NNnnOOO)", bytes_of(&scan.closer), bytes_of(&scan.parts), scan.new,
                               scan.count, scan.places, scan.every ? Py_True : Py_False,
                               scan.scattered ? Py_True : Py_False);
    else if (!PyErr_Occurred())
        result = Py_NewRef(Py_None);
    Py_DECREF(scan.places);
    PyMem_Free(scan.parts.start);
    PyMem_Free(scan.closer.start);
    return result;
}

/* ---- memory ----------------------------------------------------------------------------- */

static void free_memory(PyObject *capsule)
{
    Memory *memory = PyCapsule_GetPointer(capsule, MEMORY);
    for (int kind = 0; kind < 1 << KIND_BITS; kind++)
        forget(&memory->kinds[kind]);
    Py_XDECREF(memory->words_object);
    PyMem_Free(memory);
}

/* An empty memory for scans that look for some words. */
static PyObject *new_memory(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *words, *capsule;
    Memory *memory;
    if (!PyArg_ParseTuple(args, "O!:memory", &PyTuple_Type, &words))
        return NULL;
    if (!(memory = PyMem_Calloc(1, sizeof *memory)))
        return PyErr_NoMemory();
    if (!(capsule = PyCapsule_New(memory, MEMORY, free_memory))) {
        PyMem_Free(memory);
        return NULL;
    }
    memory->words_object = Py_NewRef(words);
    if (take_words(memory, words))
        return capsule;
    Py_DECREF(capsule);
    return NULL;
}

/* ---- parts of lines --------------------------------------------------------------------- */

/* The part of a line; of no length but beyond the text where there is none. */
static Part part_of(const char *parts, Py_ssize_t size, Py_ssize_t line, int part)
{
    Part found = {UINT32_MAX, UINT32_MAX};
    const Py_ssize_t lines = size / (Py_ssize_t)sizeof(Part[PARTS]);
    if (line >= 0 && line < lines && part >= 0 && part < PARTS)
        memcpy(&found, parts + (size_t)(line * PARTS + part) * sizeof found, sizeof found);
    return found;
}

static PyObject *cut(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *text, *parts;
    Py_ssize_t size, parts_size;
    PyObject *places, *place, *result = NULL;
    Buffer array = {NULL, 0, 0};
    int part;
    if (!PyArg_ParseTuple(args, "y#y#iO:cut", &text, &size, &parts, &parts_size, &part, &places) ||
        !(places = PyObject_GetIter(places)))
        return NULL;
    int added = add(&array, "[", 1);
    while (added && (place = PyIter_Next(places))) {
        const Part found = part_of(parts, parts_size, PyLong_AsSsize_t(place), part);
        Py_DECREF(place);
        added = found.start <= found.end && found.end <= (size_t)size;
        if (!added && !PyErr_Occurred())
            PyErr_SetString(PyExc_IndexError, "no such line, or no such part of it");
        added = added && (array.size == 1 || add(&array, ",", 1)) &&
                add(&array, text + found.start, found.end - found.start);
    }
    if (added && !PyErr_Occurred() && add(&array, "]", 1))
        result = bytes_of(&array);
    Py_DECREF(places);
    PyMem_Free(array.start);
    return result;
}

static PyMethodDef methods[] = {
    {"memory", new_memory, METH_VARARGS, NULL},
    {"scan", scan, METH_VARARGS, NULL},
    {"cut", cut, METH_VARARGS, NULL},
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
