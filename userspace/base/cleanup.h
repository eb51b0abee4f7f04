/* SPDX-License-Identifier: MIT */
/* Scope-bound ownership: _cleanup_(f) runs f(&var) when var leaves scope; TAKE_* hands ownership out. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

#define TAKE_PTR(p)                                                                                                    \
	({                                                                                                             \
		__auto_type _p = &(p);                                                                                 \
		__auto_type _v = *_p;                                                                                  \
		*_p = NULL;                                                                                            \
		_v;                                                                                                    \
	})
#define TAKE_FD(fd)                                                                                                    \
	({                                                                                                             \
		int *_f = &(fd);                                                                                       \
		int _v = *_f;                                                                                          \
		*_f = -1;                                                                                              \
		_v;                                                                                                    \
	})

/* DEFINE_CLEANUP(T, destroy): static inline void destroyp(T *p), for _cleanup_(destroyp) */
#define DEFINE_CLEANUP(type, func)                                                                                     \
	static inline void func##p(type *p)                                                                            \
	{                                                                                                              \
		if (*p)                                                                                                \
			func(*p);                                                                                      \
	}

static inline void freep(void *p)
{
	free(*(void **)p);
}
static inline void closep(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}
static inline void fclosep(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}
#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)
#define _cleanup_fclose_ _cleanup_(fclosep)
