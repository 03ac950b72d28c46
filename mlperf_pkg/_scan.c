/* What mlperf_pkg/batch.py finds out about a block of lines without it, many times as fast.
 *
 * Most lines differ from one before in nothing but digits. What was found out about that one holds
 * for them, as nothing that is looked for has digits. No byte is looked at beyond the end of a
 * line, and nothing is kept after a call. A function that returns 0 or NULL has either set an
 * exception or come upon a line that is not plain.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

#define RECORD ":::MLLOG {" /* the token, and how a record begins */
#define RECORD_SIZE 10
#define TOKEN_SIZE 9
#define ALMOST_SIZE 6  /* bytes of it that make a line count */
#define LONG_LINE 1200 /* as in batch.py */
#define KINDS 256      /* that are remembered */
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
#define MIX UINT64_C(0x9e3779b97f4a7c15)

/* A plain line: where its token and the text of its key stand, and the places of that key. */
typedef struct {
    const char *start, *end, *token, *key, *key_end;
    PyObject *places; /* borrowed */
} Line;

typedef struct {
    PyObject *words, *places;
    Line kinds[KINDS];
    Py_ssize_t count, body; /* lines that count, and bytes behind their tokens, ends included */
    int every, scattered;
} Scan;

static const char *find(const char *start, const char *end, char byte)
{
    return start < end ? memchr(start, byte, (size_t)(end - start)) : NULL;
}

/* The first place of a text; ``rare`` is the index of its byte that is to be looked for first. */
static const char *search(const char *start, const char *end, const char *text, Py_ssize_t size,
                          Py_ssize_t rare)
{
    if (end - start < size || !size)
        return size ? NULL : start;
    end -= size - rare - 1;
    for (const char *at = start + rare; (at = find(at, end, text[rare])); at++)
        if (at[-rare] == *text && !memcmp(at - rare, text, (size_t)size))
            return at - rare;
    return NULL;
}

static const char *almost_token(const char *start, const char *end)
{
    return search(start, end, RECORD, ALMOST_SIZE, 3);
}

/* What follows a name, with its quotes, that stands on a line once. */
static const char *after_name(const Line *line, const char *name)
{
    const Py_ssize_t size = (Py_ssize_t)strlen(name);
    const char *found = search(line->start, line->end, name, size, 1);
    return found && !search(found + size, line->end, name, size, 1) ? found + size : NULL;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

/* Whether a line is plain, and where its parts are. */
static int look(Line *line)
{
    const char *end = line->end, *after = line->token + ALMOST_SIZE;
    if (end - line->start > LONG_LINE || end - line->token < RECORD_SIZE || end[-1] != '}' ||
        memcmp(line->token, RECORD, RECORD_SIZE) || almost_token(after, end))
        return 0;
    for (const char *at = line->start; at < end; at++)
        if (*at == '\\' || *at == '\r' || (unsigned char)*at >= 0x80)
            return 0;
    if (!after_name(line, "\"value\"") || !after_name(line, "\"metadata\"") ||
        !after_name(line, "\"time_ms\"") || !(after = after_name(line, "\"key\"")))
        return 0;
    after = skip_blanks(after, end);
    if (after == end || *after != ':')
        return 0;
    after = skip_blanks(after + 1, end);
    if (after == end || *after != '"')
        return 0;
    line->key = after + 1;
    line->key_end = find(line->key, end, '"');
    return line->key_end != NULL;
}

/* Look for the words anywhere but in the key; it is an underscore that makes them rare. */
static int look_for_words(Scan *scan, const Line *line)
{
    for (Py_ssize_t index = 0; !scan->scattered && index < PyTuple_Size(scan->words); index++) {
        char *word;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(scan->words, index), &word, &size))
            return 0;
        const char *score = find(word, word + size, '_');
        const Py_ssize_t rare = score ? score - word : 0;
        scan->scattered = search(line->start, line->key, word, size, rare) ||
                          search(line->key_end, line->end, word, size, rare);
    }
    return 1;
}

static int find_places(Line *line, PyObject *places)
{
    PyObject *key = PyUnicode_DecodeASCII(line->key, line->key_end - line->key, NULL);
    if (!key)
        return 0;
    line->places = PyDict_GetItemWithError(places, key);
    if (!line->places && !PyErr_Occurred()) {
        PyObject *list = PyList_New(0);
        if (list && !PyDict_SetItem(places, key, list))
            line->places = list;
        Py_XDECREF(list);
    }
    Py_DECREF(key);
    return line->places != NULL;
}

/* Eight bytes, all digits being 0. */
static uint64_t outline(const char *at)
{
    uint64_t bytes, digits;
    memcpy(&bytes, at, sizeof bytes);
    digits = bytes ^ EACH('0');
    digits = ~(((digits & EACH(0x7f)) + EACH(0x80 - 10)) | digits) & EACH(0x80);
    return bytes & ~((digits >> 7) * 15);
}

static Line *kind_of(Scan *scan, const char *start, const char *end)
{
    uint64_t hash = (uint64_t)(end - start);
    for (; end - start >= 8; start += 8)
        hash = (hash << 7 | hash >> 57) + outline(start) * MIX;
    return &scan->kinds[(hash * MIX) >> 56];
}

/* Whether a line has the key of a plain one and differs from it in nothing but digits. */
static int alike(const char *start, const char *end, const Line *plain)
{
    const Py_ssize_t size = end - start, key = plain->key - plain->start;
    if (!plain->start || plain->end - plain->start != size ||
        memcmp(start + key, plain->key, (size_t)(plain->key_end - plain->key)))
        return 0;
    for (Py_ssize_t at = 0; at < size - 8; at += 8)
        if (memcmp(start + at, plain->start + at, 8) &&
            outline(start + at) != outline(plain->start + at))
            return 0;
    return outline(end - 8) == outline(plain->end - 8); /* the names alone are longer */
}

static int add_line(Scan *scan, const char *start, const char *end)
{
    Line *kind = kind_of(scan, start, end);
    if (!alike(start, end, kind)) {
        Line line = {.start = start, .end = end, .token = almost_token(start, end)};
        scan->every = scan->every && line.token == start;
        if (!line.token)
            return 1;
        if (!look(&line) || !look_for_words(scan, &line) || !find_places(&line, scan->places))
            return 0;
        *kind = line;
    }
    PyObject *place = PyLong_FromSsize_t(scan->count++);
    const int added = place && !PyList_Append(kind->places, place);
    Py_XDECREF(place);
    scan->body += kind->end - kind->token - TOKEN_SIZE + 1;
    return added;
}

static int add_lines(Scan *scan, const char *at, const char *end)
{
    for (const char *line_end; at < end; at = line_end + 1) {
        line_end = find(at, end, '\n');
        line_end = line_end ? line_end : end;
        if (!add_line(scan, at, line_end))
            return 0;
    }
    return 1;
}

/* What follows the tokens, once all lines are known to be plain. */
static PyObject *body_of(const Scan *scan, const char *at, const char *end)
{
    PyObject *body = PyBytes_FromStringAndSize(NULL, scan->count ? scan->body - 1 : 0);
    char *to = body ? PyBytes_AsString(body) : NULL;
    for (Py_ssize_t number = 0; to && number < scan->count; number++) {
        const char *tail = (scan->every ? at : almost_token(at, end)) + TOKEN_SIZE;
        const char *line_end = find(tail, end, '\n');
        line_end = line_end ? line_end : end;
        if (number)
            *to++ = '\n';
        memcpy(to, tail, (size_t)(line_end - tail));
        to += line_end - tail;
        at = line_end + 1;
    }
    return body;
}

static PyObject *scan(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *text;
    Py_ssize_t size;
    Scan scan = {.every = 1};
    PyObject *body, *result = NULL;
    if (!PyArg_ParseTuple(args, "y#O!:scan", &text, &size, &PyTuple_Type, &scan.words) ||
        !(scan.places = PyDict_New()))
        return NULL;
    if (!add_lines(&scan, text, text + size))
        result = PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    else if ((body = body_of(&scan, text, text + size)))
        result = Py_BuildValue("NOOO", body, scan.places, scan.every ? Py_True : Py_False,
                               scan.scattered ? Py_True : Py_False);
    Py_DECREF(scan.places);
    return result;
}

static PyMethodDef methods[] = {{"scan", scan, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "mlperf_pkg._scan", .m_methods = methods, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__scan(void)
{
    return PyModuleDef_Init(&definition);
}
