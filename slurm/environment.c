#include "slurm/environment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slurm/names.h"

static int set_variable(const Environment* environment, const char* name, const char* value,
                        Failure* failure) {
  if (value == NULL) return fail_with(failure, "failed", "", "spark-staged reported a copy without a path");
  if (name == NULL) return fail_with(failure, "failed", "", "no memory for the step's variables");
  return environment->set(environment->step, name, value, failure);
}

// By which programs of the job find the daemon: a dataset called socket has only the variable of its `env`.
static const char kDaemonVariable[] = "SPARK_STAGE_SOCKET";

int set_dataset_variables(const Environment* environment, const NameList* names, const StagedList* staged,
                          Failure* failure) {
  if (staged->count != names->count)
    return fail_with(failure, "failed", "are spark-stage and spark-stage-slurm of one version?",
                     "spark-staged reported %zu copies for %zu datasets", staged->count, names->count);
  int result = 0;
  for (size_t at = 0; at < names->count && result == 0; ++at) {
    char* variable = environment_name(names->names[at]);
    const char *path = staged_text(staged, at, "path"), *other = staged_text(staged, at, "env");
    if (variable == NULL || strcmp(variable, kDaemonVariable) != 0)
      result = set_variable(environment, variable, path, failure);
    if (result == 0 && other != NULL) result = set_variable(environment, other, path, failure);
    free(variable);
  }
  return result;
}

int set_output_variable(const Environment* environment, const char* output, const char* folder,
                        Failure* failure) {
  char* named = NULL;
  char* variable = asprintf(&named, "out_%s", output) < 0 ? NULL : environment_name(named);
  const int result = set_variable(environment, variable, folder, failure);
  free(variable);
  free(named);
  return result;
}

// Whether the dataset's model has a name that no other copy among the datasets has.
static bool is_loadable(const StagedList* staged, size_t at) {
  const char *cache = staged_text(staged, at, "hub_cache"), *model = staged_text(staged, at, "hub_folder");
  if (cache == NULL || model == NULL || *model == '\0' || strchr(model, '/') != NULL) return false;
  for (size_t other = 0; other < staged->count; ++other) {
    const char *its = staged_text(staged, other, "hub_cache"),
               *name = staged_text(staged, other, "hub_folder");
    const bool is_same_name = its != NULL && name != NULL && strcmp(name, model) == 0;
    if (is_same_name && (strcmp(its, cache) != 0 || other < at)) return false;
  }
  return true;
}

bool has_hub_links(const StagedList* staged) {
  for (size_t at = 0; at < staged->count; ++at)
    if (is_loadable(staged, at)) return true;
  return false;
}

static bool is_folder(const char* path) {
  struct stat info;
  return path != NULL && *path == '/' && stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static const char kName[] = "spark-stage-hub-";

bool is_hub_folder(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != NULL && strncmp(slash + 1, kName, sizeof kName - 1) == 0;
}

static int make_folder(const char* temporary, char folder[MostHubFolder], Failure* failure) {
  const char* place = is_folder(temporary) ? temporary : "/tmp";
  const int length = snprintf(folder, MostHubFolder, "%s/%sXXXXXX", place, kName);
  if (length < MostHubFolder && mkdtemp(folder) != NULL) return 0;
  const int number = length < MostHubFolder ? errno : ENAMETOOLONG;
  *folder = '\0';
  return fail_with(failure, "failed", "load the models by their paths",
                   "no folder for HF_HUB_CACHE could be made in %s: %s", place, strerror(number));
}

int make_hub_links(const StagedList* staged, const char* temporary, char folder[MostHubFolder],
                   Failure* failure) {
  *folder = '\0';
  for (size_t at = 0; at < staged->count; ++at) {
    if (!is_loadable(staged, at)) continue;
    if (*folder == '\0' && make_folder(temporary, folder, failure) != 0) return -1;
    const char *cache = staged_text(staged, at, "hub_cache"), *model = staged_text(staged, at, "hub_folder");
    char *target = NULL, *link = NULL;
    const bool is_made = asprintf(&target, "%s/%s", cache, model) >= 0 &&
                         asprintf(&link, "%s/%s", folder, model) >= 0 && symlink(target, link) == 0;
    const int number = errno;
    free(target);
    free(link);
    if (is_made) continue;
    remove_hub_links(folder);
    *folder = '\0';
    return fail_with(failure, "failed", "load the models by their paths",
                     "no link to the model %s could be made: %s", model, strerror(number));
  }
  return 0;
}

// What is below a folder of huggingface_hub's own, such as .locks/MODEL/FILE.lock; follows nothing.
static void remove_below(int parent, const char* name, int depth) {
  const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR* list = folder < 0 ? NULL : fdopendir(folder);
  if (list == NULL && folder >= 0) close(folder);
  for (const struct dirent* entry = NULL; list != NULL && (entry = readdir(list)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (unlinkat(folder, entry->d_name, 0) != 0 && depth > 0) remove_below(folder, entry->d_name, depth - 1);
  }
  if (list != NULL) closedir(list);
  unlinkat(parent, name, AT_REMOVEDIR);
}

int remove_hub_links(const char* folder) {
  enum { Levels = 2 };
  static const char* const notes[] = {"version.txt", "CACHEDIR.TAG"};
  const int opened = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return 0;
  DIR* list = fdopendir(opened);
  for (const struct dirent* entry = NULL; list != NULL && (entry = readdir(list)) != NULL;) {
    struct stat info;
    const bool is_link =
        fstatat(opened, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
    if (is_link) unlinkat(opened, entry->d_name, 0);
  }
  for (size_t at = 0; at < sizeof notes / sizeof *notes; ++at) unlinkat(opened, notes[at], 0);
  remove_below(opened, ".locks", Levels);
  if (list != NULL) closedir(list);
  return rmdir(folder) == 0 || errno == ENOENT ? 0 : -1;
}

// glibc's setgroups() changes all threads of the process, which is slurmstepd.
static int set_groups_of_thread(size_t count, const gid_t* groups) {
  return (int)syscall(SYS_setgroups, count, groups);
}

int remove_hub_links_as(const Rights* user, const char* folder) {
  int result = 0;
  const int count = getgroups(0, NULL);
  gid_t* before = count < 0 ? NULL : calloc((size_t)count + 1, sizeof *before);
  if (before != NULL && getgroups(count, before) == count &&
      set_groups_of_thread(user->group_count, user->groups) == 0) {
    const int gid_before = setfsgid(user->gid), uid_before = setfsuid(user->uid);
    result = remove_hub_links(folder);
    setfsuid((uid_t)uid_before);
    setfsgid((gid_t)gid_before);
    set_groups_of_thread((size_t)count, before);
  }
  free(before);
  return result;
}

// Set where HF_HUB_OFFLINE was set with the folder, and not by the user. `spark-stage run` sets it too.
static const char kOfflineMark[] = "SPARK_HUB_OFFLINE_IS_OURS";
static const char kCache[] = "HF_HUB_CACHE", kOffline[] = "HF_HUB_OFFLINE";

static bool is_variable_set(const Environment* environment, const char* name) {
  char value[MostHubFolder];
  return environment->get(environment->step, name, value, sizeof value);
}

static bool is_set_to(const Environment* environment, const char* name, const char* wanted) {
  char value[MostHubFolder];
  return environment->get(environment->step, name, value, sizeof value) && strcmp(value, wanted) == 0;
}

void drop_inherited_hub_links(const Environment* environment) {
  char folder[MostHubFolder];
  if (environment->get(environment->step, kCache, folder, sizeof folder) && is_hub_folder(folder))
    environment->unset(environment->step, kCache);
  if (is_set_to(environment, kOfflineMark, "1") && is_set_to(environment, kOffline, "1"))
    environment->unset(environment->step, kOffline);
  environment->unset(environment->step, kOfflineMark);
}

bool wants_hub_links(const Environment* environment) {
  static const char* const containers[] = {
      "SLURM_CONTAINER",  // an OCI bundle
      "SLURM_SPANK__SLURM_SPANK_OPTION_pyxis_container_image",
      "SLURM_SPANK__SLURM_SPANK_OPTION_pyxis_container_name",
  };
  for (size_t at = 0; at < sizeof containers / sizeof *containers; ++at)
    if (is_variable_set(environment, containers[at])) return false;
  return !is_set_to(environment, "SPARK_STAGE_HUB_CACHE", "off") && !is_variable_set(environment, kCache);
}

int set_hub_variables(const Environment* environment, const char* folder, Failure* failure) {
  if (environment->set(environment->step, kCache, folder, failure) != 0) return -1;
  if (is_variable_set(environment, kOffline)) return 0;
  if (environment->set(environment->step, kOffline, "1", failure) != 0) return -1;
  return environment->set(environment->step, kOfflineMark, "1", failure);
}

// Asks no file system: one whose server is being replaced would not answer.
static bool is_mount(const char* path) {
  struct statx seen;
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
  return statx(AT_FDCWD, path, flags, 0, &seen) == 0 && (seen.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// The process that listens on the socket; 0: unknown.
static pid_t listener_of(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct ucred peer = {0};
  socklen_t length = sizeof peer;
  if (strlen(path) >= sizeof address.sun_path) return 0;
  strcpy(address.sun_path, path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  if (connect(fd, (struct sockaddr*)&address, sizeof address) == 0)
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
  close(fd);
  return peer.pid;
}

typedef union Control {
  char bytes[CMSG_SPACE(sizeof(int))];
  struct cmsghdr aligned;
} Control;

// A mount that is attached nowhere; without it, why there is none.
static void send_mount(int to, int tree, int error) {
  Control control = {{0}};
  struct iovec part = {&error, sizeof error};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (tree >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof tree);
    memcpy(CMSG_DATA(header), &tree, sizeof tree);
  }
  (void)sendmsg(to, &message, MSG_NOSIGNAL);
}

static int receive_mount(int from) {
  int error = ECHILD, tree = -1;
  Control control = {{0}};
  struct iovec part = {&error, sizeof error};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  const ssize_t got = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
  struct cmsghdr* header = got <= 0 ? NULL : CMSG_FIRSTHDR(&message);
  if (header != NULL && header->cmsg_type == SCM_RIGHTS) memcpy(&tree, CMSG_DATA(header), sizeof tree);
  if (tree < 0) errno = error;
  return tree;
}

static int open_of(pid_t process, const char* what, int flags) {
  char name[64];
  snprintf(name, sizeof name, "/proc/%d/%s", (int)process, what);
  return open(name, flags | O_CLOEXEC);
}

// In a process of its own, which enters the namespace. The daemon's root may be a folder of it.
static int open_mount(pid_t process, const char* path) {
  const struct mount_attr follows = {.propagation = MS_SLAVE};  // the job's mounts never reach the host
  const int mounts = open_of(process, "ns/mnt", O_RDONLY), root = open_of(process, "root", O_PATH);
  if (mounts < 0 || root < 0 || setns(mounts, CLONE_NEWNS) != 0) return -1;
  const int tree = open_tree(root, path + strspn(path, "/"),
                             OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT);
  if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, (struct mount_attr*)&follows, sizeof follows) != 0)
    return -1;
  return tree;
}

static int mount_of(pid_t process, const char* path) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    const int tree = open_mount(process, path);
    send_mount(ends[1], tree, errno);
    _exit(0);
  }
  close(ends[1]);
  const int tree = child < 0 ? -1 : receive_mount(ends[0]);
  const int error = errno;
  close(ends[0]);
  while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
  errno = error;
  return tree;
}

static int show_view(const char* socket, const char* path, Failure* failure) {
  if (is_mount(path)) return 0;
  const pid_t daemon = listener_of(socket);
  const int tree = daemon == 0 ? -1 : mount_of(daemon, path);
  int result = -1;
  if (tree >= 0) result = move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
  const int error = errno;
  if (tree >= 0) close(tree);
  if (result == 0) return 0;
  return fail_with(failure, "failed", "without :now the job waits for the copy, which it sees",
                   "the mounts of the job do not have the live view %s: %s", path, strerror(error));
}

int show_views(const char* socket, const StagedList* staged, Failure* failure) {
  int result = 0;
  for (size_t at = 0; at < staged->count && result == 0; ++at) {
    const char* path = staged_text(staged, at, "path");
    if (path != NULL && is_live(staged, at)) result = show_view(socket, path, failure);
  }
  return result;
}
