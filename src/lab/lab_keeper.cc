#include "lab/lab_keeper.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "os/system_error.h"

namespace weft::lab {
namespace {

constexpr int kEndMsMax = 5000;  // how long to wait until a killed process has ended

// The message that the keeper sends when it is ready, or has failed at `step`.
struct Report {
  pid_t pid = 0;
  int error = 0;
  char step[32] = {};
};

// State and start time of a process, from /proc/PID/stat. The program name before them may contain
// anything, also ')'.
struct Life {
  char state = '?';
  std::uint64_t start = 0;
};
std::optional<Life> life_from(const std::string& text) {
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end + 1));
  Life life;
  std::string skipped;
  fields >> life.state;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> life.start;
  if (!fields) return std::nullopt;
  return life;
}

// nullopt: the process does not exist. Errors: its state cannot be read, so it may be alive.
Result<std::optional<Life>> life_of(pid_t pid) {
  const std::string path = fmt::format("/proc/{}/stat", pid);
  const os::FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 2048> text;
  const ssize_t got = fd.is_open() ? read(fd.get(), text.data(), text.size()) : -1;
  if (got < 0 && (errno == ENOENT || errno == ESRCH)) return std::optional<Life>();
  if (got < 0) return os::system_error("lab: " + path);
  return life_from(std::string(text.data(), static_cast<std::size_t>(got)));
}

bool is_of(const std::optional<Life>& life, const LabKeeper& keeper) {
  return life && life->start == keeper.start && life->state != 'Z' && life->state != 'X';
}

bool put_file(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, text, std::strlen(text)) >= 0;
  const int error = errno;
  close(fd);
  errno = error;
  return written;
}

struct Maps {
  std::string uid, gid;
};

// Makes the keeper's namespaces. Runs in the keeper, with system calls only. Returns the step that
// failed, with errno; null on success.
const char* settle(const Maps& maps) {
  if (unshare(CLONE_NEWUSER) != 0) return "unshare(CLONE_NEWUSER)";
  if (!put_file("/proc/self/setgroups", "deny")) return "/proc/self/setgroups";
  if (!put_file("/proc/self/uid_map", maps.uid.c_str())) return "/proc/self/uid_map";
  if (!put_file("/proc/self/gid_map", maps.gid.c_str())) return "/proc/self/gid_map";
  if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0) return "unshare(CLONE_NEWNS|NEWNET)";
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return "mount --make-rprivate";
  // A network namespace gets its name from a file in kNetnsFolder. We may not write to the
  // machine's folder, so a tmpfs covers it.
  const bool has_folder = access(kNetnsFolder, F_OK) == 0;
  if (mount("weft", has_folder ? kNetnsFolder : "/run", "tmpfs", 0, "mode=0755") != 0)
    return "mount tmpfs";
  if (!has_folder && mkdir(kNetnsFolder, 0755) != 0) return kNetnsFolder;
  return nullptr;
}

[[noreturn]] void keep(int leash, int report_to, const Maps& maps) {
  Report report;
  report.pid = getpid();
  const char* const failed = settle(maps);
  if (failed != nullptr) {
    report.error = errno;
    std::strncpy(report.step, failed, sizeof(report.step) - 1);
  }
  // Close our copies of stdin, stdout and stderr: a program that reads our caller's output until
  // its end must not wait for the keeper.
  const int nothing = open("/dev/null", O_RDWR);
  if (nothing < 0 || write(report_to, &report, sizeof(report)) != sizeof(report)) _exit(1);
  for (int fd = 0; fd < 3; ++fd) dup2(nothing, fd);
  dup2(leash, 3);
  close_range(4, ~0u, 0);
  char byte = 0;
  if (failed != nullptr || read(3, &byte, 1) != 1) _exit(1);
  close(3);
  prctl(PR_SET_NAME, "weft-lab");
  for (;;) pause();
}

Error forbidden(const char* step, int error) {
  return {ErrorKind::kUnsupported,
          fmt::format("lab: needs root, or a user namespace, and this machine gives none ({}: {}); "
                      "run as root, or allow it: sysctl user.max_user_namespaces=1000, "
                      "kernel.unprivileged_userns_clone=1 or "
                      "kernel.apparmor_restrict_unprivileged_userns=0 where they exist",
                      step, strerrordesc_np(error))};
}

}  // namespace

std::optional<LabKeeper> find_process(pid_t pid) {
  const auto life = life_of(pid);
  if (!life || !*life) return std::nullopt;
  return LabKeeper{.pid = pid, .start = (*life)->start};
}

bool is_alive(const LabKeeper& keeper) {
  const auto life = life_of(keeper.pid);
  return !life || is_of(*life, keeper);
}

Result<void> end_keeper(const LabKeeper& keeper) {
  // First open the process, then check it, so that the process that is killed is the process that
  // was checked. The system call is made by number, because <sys/pidfd.h> of Debian 12 does not
  // compile as C++.
  const os::FileDescriptor held(static_cast<int>(syscall(SYS_pidfd_open, keeper.pid, 0)));
  const int error = errno;
  if (!held.is_open() && error == ESRCH) return {};
  WEFT_TRY(const auto life, life_of(keeper.pid));
  if (!is_of(life, keeper)) return {};
  if (!held.is_open())
    return os::system_error(fmt::format("lab: process {} cannot be ended", keeper.pid), error);
  if (syscall(SYS_pidfd_send_signal, held.get(), SIGKILL, nullptr, 0) != 0 && errno != ESRCH)
    return os::system_error(fmt::format("lab: process {} cannot be ended", keeper.pid));
  pollfd gone{.fd = held.get(), .events = POLLIN, .revents = 0};
  int ready = 0;
  while ((ready = poll(&gone, 1, kEndMsMax)) < 0 && errno == EINTR) {
  }
  if (ready == 1) return {};
  return Error{ErrorKind::kSystem, fmt::format("lab: process {} does not end", keeper.pid)};
}

bool is_lab_root() {
  if (geteuid() != 0) return false;
  // uid 0 in a user namespace is not root of the machine.
  std::ifstream map("/proc/self/uid_map");
  std::uint64_t inside = 1, outside = 1, count = 0;
  if (!(map >> inside >> outside >> count) || outside != 0 || count != 0xffff'ffff) return false;
  std::ifstream status("/proc/self/status");
  constexpr std::uint64_t kNetAdmin = 1ull << 12, kSysAdmin = 1ull << 21;
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("CapEff:", 0) != 0) continue;
    const std::uint64_t has = std::strtoull(line.c_str() + 7, nullptr, 16);
    return (has & kNetAdmin) != 0 && (has & kSysAdmin) != 0;
  }
  return false;
}

Result<NewKeeper> NewKeeper::start() {
  const Maps maps{.uid = fmt::format("0 {} 1", geteuid()), .gid = fmt::format("0 {} 1", getegid())};
  int leash[2], report[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, leash) != 0)
    return Error{ErrorKind::kSystem, fmt::format("lab: socketpair: {}", strerrordesc_np(errno))};
  os::FileDescriptor leash_end(leash[0]), leash_hand(leash[1]);
  if (pipe2(report, O_CLOEXEC) != 0)
    return Error{ErrorKind::kSystem, fmt::format("lab: pipe: {}", strerrordesc_np(errno))};
  os::FileDescriptor hear(report[0]), tell(report[1]);
  // Fork twice, so that the keeper is not our child and leaves no zombie.
  const pid_t between = fork();
  if (between < 0)
    return Error{ErrorKind::kSystem, fmt::format("lab: fork: {}", strerrordesc_np(errno))};
  if (between == 0) {
    if (setsid() < 0 || chdir("/") != 0) _exit(1);
    const pid_t pid = fork();
    if (pid != 0) _exit(pid < 0 ? 1 : 0);
    close(leash[1]);
    keep(leash[0], report[1], maps);
  }
  tell.reset();
  leash_end.reset();
  while (waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  Report said;
  ssize_t got = 0;
  while ((got = read(hear.get(), &said, sizeof(said))) < 0 && errno == EINTR) {
  }
  if (got != static_cast<ssize_t>(sizeof(said))) return forbidden("fork", EAGAIN);
  if (said.error != 0) return forbidden(said.step, said.error);
  const auto keeper = find_process(said.pid);
  if (!keeper) return forbidden("keeper", ESRCH);
  NewKeeper made;
  made.keeper_ = *keeper;
  made.lifetime_socket_ = std::move(leash_hand);
  return made;
}

void NewKeeper::let_go() {
  WEFT_ASSERT(lifetime_socket_.is_open());
  const char byte = 1;
  // If the keeper has already ended, the next is_alive() finds out.
  [[maybe_unused]] const ssize_t sent = send(lifetime_socket_.get(), &byte, 1, MSG_NOSIGNAL);
  lifetime_socket_.reset();
}

}  // namespace weft::lab
