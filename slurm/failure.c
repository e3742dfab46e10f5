#include "slurm/failure.h"

#include <stdarg.h>
#include <stdio.h>

int fail_with(Failure* failure, const char* kind, const char* hint, const char* what, ...) {
  va_list arguments;
  va_start(arguments, what);
  vsnprintf(failure->what, sizeof failure->what, what, arguments);
  va_end(arguments);
  snprintf(failure->kind, sizeof failure->kind, "%s", kind);
  snprintf(failure->hint, sizeof failure->hint, "%s", hint);
  return -1;
}
