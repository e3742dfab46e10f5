#include "daemon/mounts/libmount_call.hpp"

#include <fcntl.h>
#include <libmount.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::mounts {
namespace {

using Context = std::unique_ptr<libmnt_context, decltype(&mnt_free_context)>;

Context make_context() {
  return {mnt_new_context(), &mnt_free_context};
}

// Captures standard error in memory while it exists: a helper reports its reason there, not in its exit
// status.
class CapturedStderr {
 public:
  CapturedStderr()
      : memory_(::memfd_create("mount-helper", MFD_CLOEXEC)),
        saved_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    if (memory_ && saved_) ::dup2(memory_.get(), STDERR_FILENO);
  }
  ~CapturedStderr() { restore(); }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  std::string take() {
    restore();
    char words[4096];
    const ssize_t got = memory_ ? ::pread(memory_.get(), words, sizeof words, 0) : 0;
    return {words, static_cast<std::size_t>(got > 0 ? got : 0)};
  }

 private:
  void restore() {
    if (memory_ && saved_) ::dup2(saved_.get(), STDERR_FILENO);
    saved_.reset();
  }
  UniqueFd memory_, saved_;
};

MountOutcome failed_with(int error_number) {
  MountOutcome outcome;
  outcome.error_number = error_number;
  return outcome;
}

// Since 2.39 libmount mounts through a file system context. The kernel then writes its messages there instead
// of to its log, and libmount appends them to a sentence: "fsconfig() failed: ext4: Unknown …".
std::string words_in_context(const Context& context, int result) {
  char sentence[4096] = "";
  mnt_context_get_excode(context.get(), result, sentence, sizeof sentence);
  constexpr std::string_view kLead = "fsconfig() failed: ";
  const std::string_view words = sentence;
  return words.starts_with(kLead) ? std::string(words.substr(kLead.size())) : "";
}

// `result` as returned by libmount's calls: 0, or a negative errno or libmount code.
MountOutcome outcome_of(const Context& context, int result) {
  MountOutcome outcome;
  if (mnt_context_helper_executed(context.get()) == 1) {
    outcome.helper_status = mnt_context_get_helper_status(context.get());
    return outcome;
  }
  if (mnt_context_syscall_called(context.get()) == 1) {
    outcome.error_number = mnt_context_get_syscall_errno(context.get());
    // Newer libmount makes several calls, and stores the error of the failed one only in the result.
    if (outcome.error_number == 0 && result < 0) outcome.error_number = -result;
    if (!outcome.done()) outcome.kernel_words = words_in_context(context, result);
    return outcome;
  }
  // Its own codes begin at 5000 (MNT_ERR_NOFSTAB); they are about fstab and loop devices, which are not used
  // here.
  if (result != 0) outcome.error_number = result < 0 && -result < 5000 ? -result : EINVAL;
  return outcome;
}

// fstab does not affect a volume's options, and there is no fallback to read-only.
int set_up(const Context& context, const std::string& source, const std::filesystem::path& target,
           const std::string& type, const std::string& options) {
  int done = mnt_context_set_source(context.get(), source.c_str());
  if (done == 0) done = mnt_context_set_target(context.get(), target.c_str());
  if (done == 0) done = mnt_context_set_fstype(context.get(), type.c_str());
  if (done == 0) done = mnt_context_set_options(context.get(), options.c_str());
  if (done == 0) done = mnt_context_set_optsmode(context.get(), MNT_OMODE_NOTAB);
  if (done == 0) done = mnt_context_enable_rwonly_mount(context.get(), 1);
  return done;
}

}  // namespace

MountOutcome call_mount(const std::string& source, const std::filesystem::path& target,
                        const std::string& type, const std::string& options) {
  const Context context = make_context();
  if (!context) return failed_with(ENOMEM);
  if (const int failed = set_up(context, source, target, type, options); failed != 0)
    return failed_with(-failed);
  CapturedStderr captured;
  MountOutcome outcome = outcome_of(context, mnt_context_mount(context.get()));
  outcome.helper_words = captured.take();
  return outcome;
}

MountOutcome call_remount(const Mount& mount, bool read_only) {
  const Context context = make_context();
  if (!context) return failed_with(ENOMEM);
  // A remount must repeat a mount's flags; those of the file system stay unless they are named.
  std::vector<std::string> options = {"remount", "_netdev", read_only ? "ro" : "rw"};
  for (const std::string& option : split(mount.options, ',')) {
    if (option != "ro" && option != "rw") options.push_back(option);
  }
  if (const int failed = set_up(context, mount.source, mount.target, mount.type, join(options, ","));
      failed != 0)
    return failed_with(-failed);
  return outcome_of(context, mnt_context_mount(context.get()));
}

MountOutcome call_unmount(const std::filesystem::path& target, UnmountCall how) {
  const Context context = make_context();
  if (!context) return failed_with(ENOMEM);
  int prepared = mnt_context_set_target(context.get(), target.c_str());
  if (prepared == 0) prepared = mnt_context_disable_helpers(context.get(), 1);
  if (prepared == 0) prepared = mnt_context_disable_swapmatch(context.get(), 1);
  if (prepared == 0) prepared = mnt_context_enable_lazy(context.get(), how == UnmountCall::Detach ? 1 : 0);
  if (prepared == 0) prepared = mnt_context_enable_force(context.get(), how == UnmountCall::Plain ? 0 : 1);
  if (prepared != 0) return failed_with(-prepared);
  return outcome_of(context, mnt_context_umount(context.get()));
}

}  // namespace spark::mounts
