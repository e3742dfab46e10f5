// The place of this node's daemon, from plugstack.conf.
#ifndef SPARK_SLURM_SETTINGS_H
#define SPARK_SLURM_SETTINGS_H

#include <stddef.h>

#include "slurm/failure.h"

enum { MostSocket = 108, MostNode = 256 };  // sizes for sockaddr_un and for a host name

typedef struct Daemon {
  char socket[MostSocket];
  char node[MostNode];  // named in messages, since several nodes write to one terminal
} Daemon;

// Reads the arguments of plugstack.conf: only socket=PATH, with %n for the node's name. `node` is the name
// used by slurmd; NULL: this host's own name.
int read_settings(int count, char** arguments, const char* node, Daemon* daemon, Failure* failure);

#endif
