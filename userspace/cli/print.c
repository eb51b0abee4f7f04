// SPDX-License-Identifier: MIT
#include "print.h"
#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "../base/cleanup.h"
#include "../base/utf8.h"

struct cell {
	size_t at; /* of its text in table.text */
	enum print_style style;
};

struct print_table {
	const struct print_column *columns;
	size_t n_columns;
	char *text; /* all cells' strings, one behind the other */
	size_t text_used, text_size;
	struct cell *cells;
	size_t n_cells, cells_size;
	bool failed; /* out of memory */
};

static const char *const style_on[PRINT_N_STYLES] = {
	[PRINT_STRONG] = "\033[1m", [PRINT_DIM] = "\033[2m",  [PRINT_GOOD] = "\033[32m",
	[PRINT_WARN] = "\033[33m",  [PRINT_BAD] = "\033[31m",
};

void print_open(struct print *p, FILE *out)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	bool terminal = isatty(fileno(out));
	struct winsize size = {0};

	if (terminal && ioctl(fileno(out), TIOCGWINSZ, &size) < 0)
		size.ws_col = 0;
	*p = (struct print){
		.out = out,
		.color = terminal && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0,
		.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
		.width = size.ws_col,
	};
}

/* ---- text: one character after the other ---- */

struct range {
	uint32_t first, last;
};

static bool range_has(const struct range *ranges, size_t n, uint32_t c)
{
	for (size_t i = 0; i < n; i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

/* Moves the cursor or reorders what follows instead of showing something. */
static bool is_control(uint32_t c)
{
	static const struct range ranges[] = {
		{0, 0x1f}, {0x7f, 0x9f}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
	return range_has(ranges, sizeof ranges / sizeof *ranges, c);
}

/* The blocks of Unicode's EastAsianWidth.txt that are wide, and the combining marks in common use. */
static unsigned char_width(uint32_t c)
{
	static const struct range none[] = {{0x300, 0x36f}, {0x200b, 0x200d}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}};
	static const struct range wide[] = {{0x1100, 0x115f},	{0x2e80, 0x303e},  {0x3041, 0xa4cf}, {0xac00, 0xd7a3},
					    {0xf900, 0xfaff},	{0xfe30, 0xfe6f},  {0xff00, 0xff60}, {0xffe0, 0xffe6},
					    {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};

	if (range_has(none, sizeof none / sizeof *none, c))
		return 0;
	return range_has(wide, sizeof wide / sizeof *wide, c) ? 2 : 1;
}

/* Bytes of the character at s (not its end), its width in *ret_width. What is not to reach a terminal: one byte,
 * *ret_ok false. */
static size_t char_next(const char *s, unsigned *ret_width, bool *ret_ok)
{
	size_t n = utf8_char(s, strnlen(s, 4));
	uint32_t c = n > 1 ? (unsigned char)s[0] & 0x7fu >> n : (unsigned char)s[0];

	for (size_t i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	*ret_ok = n && !is_control(c);
	*ret_width = *ret_ok ? char_width(c) : 1;
	return n ? n : 1;
}

unsigned print_width(const char *text)
{
	unsigned total = 0, width;
	bool ok;

	while (*text) {
		text += char_next(text, &width, &ok);
		total += width;
	}
	return total;
}

/* As much of text as fits into max columns; returns the columns used. */
static unsigned put_upto(const struct print *p, const char *text, unsigned max)
{
	unsigned used = 0, width;
	bool ok;

	while (*text) {
		size_t n = char_next(text, &width, &ok);

		if (used + width > max)
			break;
		if (ok)
			(void)fwrite(text, 1, n, p->out);
		else
			(void)fputc('?', p->out);
		used += width;
		text += n;
	}
	return used;
}

/* Longer than max columns: its middle is left out, since names differ at either end. Returns the columns used. */
static unsigned put(const struct print *p, const char *text, unsigned max)
{
	const char *ellipsis = p->utf8 ? "…" : "..";
	unsigned room = max - print_width(ellipsis), head = room / 2, rest = print_width(text), width;
	bool ok;

	if (rest <= max)
		return put_upto(p, text, max);
	head = put_upto(p, text, head) + print_width(ellipsis);
	(void)fputs(ellipsis, p->out);
	for (; rest > max - head; rest -= width)
		text += char_next(text, &width, &ok);
	return head + put_upto(p, text, max - head);
}

static void style_begin(const struct print *p, enum print_style style)
{
	if (p->color && style_on[style])
		(void)fputs(style_on[style], p->out);
}

static void style_end(const struct print *p, enum print_style style)
{
	if (p->color && style_on[style])
		(void)fputs("\033[0m", p->out);
}

void print_text(const struct print *p, enum print_style style, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		return;
	}
	for (char *line = text, *end; line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = 0;
		if (*line) {
			style_begin(p, style);
			(void)put_upto(p, line, UINT_MAX);
			style_end(p, style);
		}
		if (end)
			(void)fputc('\n', p->out);
	}
}

/* ---- tables ---- */

struct print_table *print_table_new(const struct print_column *columns, size_t n_columns)
{
	struct print_table *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->columns = columns;
	t->n_columns = n_columns;
	return t;
}

void print_table_free(struct print_table *t)
{
	if (!t)
		return;
	free(t->text);
	free(t->cells);
	free(t);
}

/* The array with room for wanted elements, moved perhaps; NULL, and the old one as it was: no memory. */
static void *grow(void *array, size_t *capacity, size_t wanted, size_t size)
{
	size_t n = *capacity ? *capacity : 256;
	void *larger;

	if (wanted <= *capacity)
		return array;
	while (n < wanted)
		n *= 2;
	larger = reallocarray(array, n, size);
	if (larger)
		*capacity = n;
	return larger;
}

static bool make_room(struct print_table *t, size_t text_bytes)
{
	char *text = grow(t->text, &t->text_size, t->text_used + text_bytes, 1);
	struct cell *cells;

	if (!text)
		return false;
	t->text = text;
	cells = grow(t->cells, &t->cells_size, t->n_cells + 1, sizeof *cells);
	if (!cells)
		return false;
	t->cells = cells;
	return true;
}

void print_cell(struct print_table *t, enum print_style style, const char *format, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, format);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, format, ap);
	if (n < 0 || !make_room(t, (size_t)n + 1)) {
		t->failed = true;
	} else {
		(void)vsnprintf(t->text + t->text_used, (size_t)n + 1, format, again);
		t->cells[t->n_cells++] = (struct cell){.at = t->text_used, .style = style};
		t->text_used += (size_t)n + 1;
	}
	va_end(again);
	va_end(ap);
}

#define LEFT_OUT UINT_MAX /* as a width */

/* Make one column narrower, or leave it out: the rightmost spare one, then the widest that shrinks. How many columns of
 * the terminal that saves; 0: nothing more can be done. */
static unsigned table_squeeze(const struct print_table *t, unsigned *widths)
{
	size_t widest = t->n_columns;

	for (size_t i = t->n_columns; i-- > 0;) {
		enum print_column_kind kind = t->columns[i].kind;
		unsigned width = widths[i];

		if ((kind == PRINT_SPARE || kind == PRINT_SPARE_RIGHT) && width != LEFT_OUT) {
			widths[i] = LEFT_OUT;
			return width + 2;
		}
		if (kind == PRINT_SHRINKS && width > PRINT_SHORTEST &&
		    (widest == t->n_columns || width > widths[widest]))
			widest = i;
	}
	if (widest == t->n_columns)
		return 0;
	widths[widest]--;
	return 1;
}

/* What each column needs, less what the terminal is too narrow for. */
static void table_widths(const struct print_table *t, const struct print *p, unsigned *widths)
{
	unsigned total = 0, saved = 1;

	for (size_t i = 0; i < t->n_columns; i++)
		widths[i] = print_width(t->columns[i].heading);
	for (size_t i = 0; i < t->n_cells; i++) {
		unsigned w = print_width(t->text + t->cells[i].at);

		if (w > widths[i % t->n_columns])
			widths[i % t->n_columns] = w;
	}
	for (size_t i = 0; i < t->n_columns; i++)
		total += widths[i] + (i ? 2 : 0);
	while (p->width && total > p->width && saved) {
		saved = table_squeeze(t, widths);
		total -= saved;
	}
}

/* Blanks are held back until something follows them, so that no line ends in one. */
static void put_cell(const struct print *p, const char *text, enum print_style style, bool right, unsigned width,
		     unsigned *blanks)
{
	unsigned w = print_width(text);

	if (w > width)
		w = width;
	if (right)
		*blanks += width - w;
	if (w) {
		(void)fprintf(p->out, "%*s", (int)*blanks, "");
		*blanks = 0;
		style_begin(p, style);
		w = put(p, text, width);
		style_end(p, style);
	}
	if (!right || !w)
		*blanks += width - w;
}

static bool is_right(const struct print_column *c)
{
	return c->kind == PRINT_RIGHT || c->kind == PRINT_SPARE_RIGHT;
}

/* row -1: the headings */
static void put_row(const struct print_table *t, const struct print *p, const unsigned *widths, long row)
{
	unsigned blanks = 0;

	for (size_t i = 0; i < t->n_columns; i++) {
		size_t n = (size_t)row * t->n_columns + i;

		if (widths[i] == LEFT_OUT)
			continue;
		if (row < 0)
			put_cell(p, t->columns[i].heading, PRINT_STRONG, is_right(&t->columns[i]), widths[i], &blanks);
		else if (n < t->n_cells)
			put_cell(p, t->text + t->cells[n].at, t->cells[n].style, is_right(&t->columns[i]), widths[i],
				 &blanks);
		blanks += 2;
	}
	(void)fputc('\n', p->out);
}

int print_table_write(const struct print_table *t, const struct print *p)
{
	_cleanup_free_ unsigned *widths = calloc(t->n_columns, sizeof *widths);
	long n_rows = (long)((t->n_cells + t->n_columns - 1) / t->n_columns);
	unsigned n_out = 0;

	if (!widths || t->failed)
		return -ENOMEM;
	table_widths(t, p, widths);
	for (long row = -1; row < n_rows; row++)
		put_row(t, p, widths, row);
	for (size_t i = 0; i < t->n_columns; i++)
		n_out += widths[i] == LEFT_OUT;
	if (n_out)
		print_text(p, PRINT_DIM, "(%u more %s in a wider window)\n", n_out, n_out == 1 ? "column" : "columns");
	return 0;
}

char *print_bar(char *buf, size_t size, double part, unsigned cells, bool utf8)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	unsigned steps = utf8 ? 8 : 1, n, used = 0;

	if (!(part > 0))
		part = 0;
	if (part > 1)
		part = 1;
	n = (unsigned)(part * cells * steps + 0.5);
	if (part > 0 && n == 0)
		n = 1;
	buf[0] = 0;
	for (unsigned i = 0; i < n / steps && used + 4 <= size; i++)
		used += (unsigned)sprintf(buf + used, "%s", utf8 ? "█" : "#");
	if (n % steps && used + 4 <= size)
		(void)sprintf(buf + used, "%s", eighths[n % steps]);
	return buf;
}
