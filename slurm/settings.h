// What plugstack.conf and the job's options say.
#ifndef SPARK_SLURM_SETTINGS_H
#define SPARK_SLURM_SETTINGS_H

#include <stddef.h>

#include "slurm/failure.h"

enum { MostSocket = 108, MostNode = 256 };  // of sockaddr_un; of a host's name

typedef struct Settings {
  char socket[MostSocket];
  char node[MostNode];
} Settings;

// The arguments of plugstack.conf: socket=PATH alone, in which %n stands for the node's name. node: as slurmd
// calls it, NULL: this host's own name.
int read_settings(int count, char** arguments, const char* node, Settings* settings, Failure* failure);

#endif
