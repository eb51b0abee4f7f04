// SPDX-License-Identifier: MIT
#include "command.h"
#include <string.h>
#include "cmd.h"
#include "decode.h"

#define OVERRIDE_MORE                                                                                                  \
	"Kept until enabled again; the backend is shown with reason operator. Needs the agent.\n"                      \
	"SERVICE is GROUP@@name or a unique bare name, ADDRESS is ADDR:PORT."

const struct command command_table[] = {
	{
		.name = "status",
		.arguments = "",
		.does = "the agent, its interfaces and registries, and how full the flow table is",
		.more = "Asks the agent; when that is down, says so and shows what the pinned maps tell.",
		.run = cmd_status,
	},
	{
		.name = "services",
		.arguments = "",
		.does = "every service with its listeners and counters",
		.more = "Counters count both directions; bytes are those of the IP packets. CONNECTIONS completed "
			"their\n"
			"handshake, ACTIVE ones have not closed yet. AGE is since the last change of content or "
			"source.",
		.run = cmd_services,
	},
	{
		.name = "backends",
		.arguments = "[SERVICE]",
		.max_arguments = 1,
		.does = "every listed instance with its weight, share, state and reason",
		.run = cmd_backends,
	},
	{
		.name = "table",
		.arguments = "SERVICE",
		.min_arguments = 1,
		.max_arguments = 1,
		.does = "the published table of a service: who gets which share",
		.more = "A new connection draws 32 bits and goes to the first backend whose BOUND is not below them.",
		.run = cmd_table,
	},
	{
		.name = "flows",
		.arguments = "",
		.options = 1u << CLI_O_SERVICE | 1u << CLI_O_BACKEND | 1u << CLI_O_CLIENT | 1u << CLI_O_LIMIT,
		.does = "connections in the flow table",
		.run = cmd_flows,
	},
	{
		.name = "stats",
		.arguments = "",
		.options = 1u << CLI_O_ALL,
		.does = "packets by verdict, and what else is counted",
		.run = cmd_stats,
	},
	{
		.name = "dump",
		.arguments = "",
		.options = 1u << CLI_O_MAPS | 1u << CLI_O_ALL,
		.does = "all of the above at once",
		.run = cmd_dump,
	},
	{
		.name = "drain",
		.arguments = "SERVICE ADDRESS",
		.min_arguments = 2,
		.max_arguments = 2,
		.options = 1u << CLI_O_WAIT | 1u << CLI_O_DEADLINE,
		.does = "give a backend no new flows and let those it has end",
		.more = OVERRIDE_MORE,
		.run = cmd_drain,
	},
	{
		.name = "evict",
		.arguments = "SERVICE ADDRESS",
		.min_arguments = 2,
		.max_arguments = 2,
		.does = "stop using a backend at once and reset its flows",
		.more = OVERRIDE_MORE,
		.run = cmd_evict,
	},
	{
		.name = "enable",
		.arguments = "SERVICE ADDRESS",
		.min_arguments = 2,
		.max_arguments = 2,
		.does = "end a drain or evict: what the registry says counts again",
		.more = "Needs the agent. SERVICE is GROUP@@name or a unique bare name, ADDRESS is ADDR:PORT.",
		.run = cmd_enable,
	},
	{
		.name = "reload",
		.arguments = "",
		.does = "have the agent apply its changed configuration file",
		.more = "A bad file is refused whole, and the running configuration stays. Needs the agent.",
		.run = cmd_reload,
	},
	{
		.name = "detach",
		.arguments = "",
		.options = 1u << CLI_O_FORCE,
		.does = "remove programs and pins: all flows are forgotten",
		.more = "Refused while an agent lives.",
		.run = cmd_detach,
	},
	{
		.name = "preflight",
		.arguments = "INTERFACE",
		.min_arguments = 1,
		.max_arguments = 1,
		.does = "what would keep Steelyard from working on an interface",
		.run = cmd_preflight,
	},
	{
		.name = "decode",
		.arguments = "KIND [VALUE]",
		.min_arguments = 1,
		.max_arguments = 2,
		.does = "a number or word of the maps in words",
		.more = "KIND is " DECODE_KINDS ".\n"
			"VALUE is a number or a name, for words a hexadecimal number; without it a list is shown "
			"whole.",
		.run = cmd_decode,
	},
	{
		.name = "help",
		.arguments = "[COMMAND]",
		.max_arguments = 1,
		.does = "this list, or more about a command",
		.run = cmd_help,
	},
	{
		.name = "version",
		.arguments = "",
		.does = "print the version",
		.run = cmd_version,
	},
	{0},
};

const struct command *command_find(const char *name)
{
	for (const struct command *k = command_table; k->name; k++)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

bool command_is_planned(const char *name)
{
	static const char *const planned[] = {"trace", "events", "top"};

	for (size_t i = 0; i < sizeof planned / sizeof *planned; i++)
		if (strcmp(planned[i], name) == 0)
			return true;
	return false;
}
