/* SPDX-License-Identifier: MIT */
/* Aligned tables and bars for people. Text from outside (names out of a registry) is made harmless on its way to the
 * terminal: control characters, direction marks and bytes that are no UTF-8 come out as "?". */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Where it is printed to. */
struct print {
	FILE *out;
	bool color;
	bool utf8;	/* bars and ellipses may leave ASCII */
	unsigned width; /* columns of the terminal; 0: no terminal, nothing is shortened */
};

enum print_style { PRINT_PLAIN, PRINT_STRONG, PRINT_DIM, PRINT_GOOD, PRINT_WARN, PRINT_BAD, PRINT_N_STYLES };

enum print_column_kind {
	PRINT_LEFT,
	PRINT_RIGHT, /* numbers */
	/* when the terminal is too narrow: */
	PRINT_SPARE,	   /* left out, the rightmost first; stands left */
	PRINT_SPARE_RIGHT, /* the same for numbers */
	PRINT_SHRINKS,	   /* shortened in its middle, to no less than PRINT_SHORTEST, once no spare column is left */
};

struct print_column {
	const char *heading;
	enum print_column_kind kind;
};
#define PRINT_SHORTEST 12

struct print_table;

/* Colors only on a terminal that knows them and without NO_COLOR (https://no-color.org). */
void print_open(struct print *p, FILE *out);

/* NULL: no memory. columns are borrowed until print_table_free. */
struct print_table *print_table_new(const struct print_column *columns, size_t n_columns);
void print_table_free(struct print_table *t); /* NULL is fine */
/* The next cell, left to right, row by row. Out of memory is told by print_table_write. */
void print_cell(struct print_table *t, enum print_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Headings and rows; a last row cut short is filled with empty cells. 0 or -ENOMEM. */
int print_table_write(const struct print_table *t, const struct print *p);

/* One line, or a part of one, in a style. */
void print_text(const struct print *p, enum print_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Columns that text takes on a terminal. */
unsigned print_width(const char *text);

/* A bar of at most cells columns for part (0 to 1): anything above 0 shows. Returns buf. */
#define PRINT_BAR_SIZE(cells) ((cells)*3 + 1)
char *print_bar(char *buf, size_t size, double part, unsigned cells, bool utf8);
