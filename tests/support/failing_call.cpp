#include "tests/support/failing_call.hpp"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <atomic>
#include <cstdint>
#include <vector>

// The filter allows every call from this one address; the handler makes the trapped calls here.
extern "C" long spark_raw_call(long number, const long* arguments);
extern "C" const char spark_raw_call_made[];
#if defined(__x86_64__)
asm(R"(
  .text
  .type spark_raw_call, @function
spark_raw_call:
  mov %rdi, %rax
  mov %rsi, %r11
  mov 0(%r11), %rdi
  mov 8(%r11), %rsi
  mov 16(%r11), %rdx
  mov 24(%r11), %r10
  mov 32(%r11), %r8
  mov 40(%r11), %r9
  syscall
  .globl spark_raw_call_made
spark_raw_call_made:
  ret
  .globl spark_raw_call
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .type spark_raw_call, %function
spark_raw_call:
  mov x8, x0
  mov x9, x1
  ldp x0, x1, [x9]
  ldp x2, x3, [x9, #16]
  ldp x4, x5, [x9, #32]
  svc #0
  .globl spark_raw_call_made
spark_raw_call_made:
  ret
  .globl spark_raw_call
)");
#endif

namespace spark::test {
namespace {

constexpr int kCounted[] = {
#ifdef SYS_open
    SYS_open,       SYS_stat,     SYS_lstat,     SYS_access,     SYS_mkdir,     SYS_rename,
    SYS_unlink,     SYS_rmdir,    SYS_symlink,   SYS_readlink,   SYS_chmod,
#endif
    SYS_openat,     SYS_openat2,  SYS_fstat,     SYS_newfstatat, SYS_statx,     SYS_faccessat,
    SYS_faccessat2, SYS_mkdirat,  SYS_renameat2, SYS_unlinkat,   SYS_symlinkat, SYS_readlinkat,
    SYS_fchmod,     SYS_fchmodat, SYS_utimensat, SYS_getdents64, SYS_read,      SYS_pread64,
    SYS_write,      SYS_pwrite64, SYS_ftruncate, SYS_fsync,      SYS_fdatasync, SYS_flock,
    SYS_fcntl,      SYS_fstatfs,  SYS_statfs,    SYS_getrandom,
};

std::atomic<unsigned> counted{0}, failing{0};
int failure = 0;
Decide decide_on = nullptr;

std::optional<long> fail_the_nth(const FileCall& /*call*/) {
  return ++counted == failing ? std::optional<long>(-failure) : std::nullopt;
}

void on_call(int, siginfo_t* info, void* context) {
  auto* machine = &static_cast<ucontext_t*>(context)->uc_mcontext;
  const long number = info->si_syscall;
#if defined(__x86_64__)
  auto* r = machine->gregs;
  const long arguments[] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]};
  auto& result = r[REG_RAX];
#elif defined(__aarch64__)
  long arguments[6];
  for (int i = 0; i < 6; ++i) arguments[i] = static_cast<long>(machine->regs[i]);
  auto& result = machine->regs[0];
#endif
  const std::optional<long> decided = decide_on({number, arguments});
  const long answer = decided ? *decided : spark_raw_call(number, arguments);
  result = static_cast<std::remove_reference_t<decltype(result)>>(answer);
}

std::vector<sock_filter> filter(std::span<const int> numbers) {
  const auto made = reinterpret_cast<std::uintptr_t>(spark_raw_call_made);
  constexpr std::uint32_t kPlace = offsetof(seccomp_data, instruction_pointer);
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kPlace),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(made), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kPlace + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(made >> 32), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const int number : numbers) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return program;
}

}  // namespace

std::string arm_failing_call(unsigned nth, int error) {
  counted = 0;
  failing = nth;
  failure = error;
  return intercept_calls(kCounted, fail_the_nth);
}

std::string intercept_calls(std::span<const int> numbers, Decide decide) {
  decide_on = decide;
  struct sigaction action {};
  action.sa_sigaction = on_call;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (::sigaction(SIGSYS, &action, nullptr) != 0) return ::strerror(errno);
  auto program = filter(numbers);
  const sock_fprog loaded{static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &loaded) != 0)
    return std::string("this system takes no seccomp filter: ") + ::strerror(errno);
  return {};
}

long call_now(long number, long first, long second, long third, long fourth, long fifth) {
  const long arguments[] = {first, second, third, fourth, fifth, 0};
  return spark_raw_call(number, arguments);
}

unsigned calls_counted() {
  return counted;
}

}  // namespace spark::test
