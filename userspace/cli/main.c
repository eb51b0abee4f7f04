// SPDX-License-Identifier: MIT
/* steelyard, the CLI: one command, one report or one line that says why not. The commands are in command.c. */
#include <errno.h>
#include <locale.h>
#include <string.h>
#include "args.h"
#include "cmd.h"

int main(int argc, char **argv)
{
	struct cli c;
	char why[512] = "";
	int bad_usage, r;

	/* Only for what the terminal can show: numbers stay as JSON has them. */
	(void)setlocale(LC_CTYPE, "");
	bad_usage = args_parse(argc, argv, &c, why, sizeof why);
	print_open(&c.print, stdout);
	if (bad_usage)
		r = cli_usage(&c, "%s", why);
	else if (c.version)
		r = cmd_version(&c);
	else if (c.help)
		r = cmd_help(&c);
	else
		r = c.command->run(&c);
	if (fflush(stdout) || ferror(stdout)) {
		(void)fprintf(stderr, "steelyard: cannot write: %s\n", strerror(errno));
		return CLI_FAILED;
	}
	return r;
}
