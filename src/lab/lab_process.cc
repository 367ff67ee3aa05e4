#include "lab/lab_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "os/file_descriptor.h"
#include "os/system_error.h"

namespace weft::lab {
namespace {

constexpr std::size_t kOutputMax = 4 << 20;

// The keeper's namespaces, opened before the fork.
struct Namespaces {
  os::FileDescriptor user, mount, net;
};

Result<Namespaces> open_namespaces(const LabEntry& lab_entry) {
  Namespaces namespaces;
  if (!lab_entry.keeper) return namespaces;
  const auto open_file = [&](const char* kind) {
    const std::string path = fmt::format("/proc/{}/ns/{}", lab_entry.keeper->pid, kind);
    return os::FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  };
  namespaces.user = open_file("user");
  namespaces.mount = open_file("mnt");
  namespaces.net = open_file("net");
  const int error = errno;
  // Check the keeper after opening the files. This proves that they belong to the keeper, not to a
  // later process with its id.
  if (!is_alive(*lab_entry.keeper)) {
    return Error{ErrorKind::kNotFound,
                 fmt::format("lab: its keeper, process {}, is gone and everything with it; "
                             "`weft lab down` forgets it",
                             lab_entry.keeper->pid)};
  }
  if (!namespaces.user.is_open() || !namespaces.mount.is_open() || !namespaces.net.is_open())
    return os::system_error(fmt::format("lab: /proc/{}/ns", lab_entry.keeper->pid), error);
  // A process that is already inside needs no entry, and the kernel refuses to enter twice.
  struct stat theirs {
  }, ours{};
  if (fstat(namespaces.user.get(), &theirs) == 0 && stat("/proc/self/ns/user", &ours) == 0 &&
      theirs.st_ino == ours.st_ino)
    return Namespaces{};
  return namespaces;
}

// Enters the namespaces. Runs between fork and exec, with system calls only. Returns the step that
// failed, with errno; null on success.
const char* enter_namespaces(const Namespaces& namespaces, const char* netns_path) {
  if (namespaces.user.is_open()) {
    // Entering a mount namespace changes the working directory to its root. The program's relative
    // file names refer to the caller's directory, so return there.
    char here[PATH_MAX];
    const bool known = getcwd(here, sizeof(here)) != nullptr;
    if (setns(namespaces.user.get(), CLONE_NEWUSER) != 0) return "the keeper's user namespace";
    if (setns(namespaces.mount.get(), CLONE_NEWNS) != 0) return "the keeper's mount namespace";
    if (known && chdir(here) != 0) errno = 0;  // the folder does not exist inside: stay at the root
    if (setns(namespaces.net.get(), CLONE_NEWNET) != 0) return "the keeper's network namespace";
  }
  if (netns_path == nullptr) return nullptr;
  const int fd = open(netns_path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return netns_path;
  const bool entered = setns(fd, CLONE_NEWNET) == 0;
  const int error = errno;
  close(fd);
  errno = error;
  return entered ? nullptr : netns_path;
}

void put(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(125);
}

[[noreturn]] void fail(const char* what) {
  const int error = errno;
  put(what);
  put(": ");
  put(strerrordesc_np(error));
  _exit(125);
}

[[noreturn]] void child(const Namespaces& namespaces, const LabJob& job, const char* netns_path,
                        char* const* command) {
  if (const char* failed = enter_namespaces(namespaces, netns_path)) fail(failed);
  for (const auto& [path, value] : job.writes) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, value.data(), value.size()) < 0) fail(path.c_str());
    close(fd);
  }
  if (!job.show.empty()) {
    const int fd = open(job.show.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail(job.show.c_str());
    char buffer[4096];
    for (ssize_t got = 0; (got = read(fd, buffer, sizeof(buffer))) > 0;) {
      if (write(STDOUT_FILENO, buffer, static_cast<std::size_t>(got)) < 0) _exit(125);
    }
  }
  if (command[0] == nullptr) _exit(0);
  execv(command[0], command);
  fail(command[0]);
}

Result<os::FileDescriptor> as_file(const std::string& input) {
  os::FileDescriptor file(memfd_create("weft-lab-input", MFD_CLOEXEC));
  if (!file.is_open()) return os::system_error("lab: memfd_create");
  for (std::size_t at = 0; at < input.size();) {
    const ssize_t put_in = write(file.get(), input.data() + at, input.size() - at);
    if (put_in < 0) return os::system_error("lab: memfd");
    at += static_cast<std::size_t>(put_in);
  }
  if (lseek(file.get(), 0, SEEK_SET) != 0) return os::system_error("lab: memfd");
  return file;
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    if (text.size() < kOutputMax) text.append(buffer, static_cast<std::size_t>(got));
  }
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

// One line: the first message of the failed program, and the line of its input that caused it.
std::string complaint(const LabJob& job, const std::string& output) {
  std::string first = output.substr(0, output.find('\n'));
  const std::string mark = "Command failed -:";
  const std::size_t at = output.find(mark);
  if (at == std::string::npos) return first;
  const long number = std::strtol(output.c_str() + at + mark.size(), nullptr, 10);
  std::size_t from = 0;
  for (long line = 1; line < number && from != std::string::npos; ++line) {
    from = job.input.find('\n', from);
    if (from != std::string::npos) ++from;
  }
  if (from == std::string::npos) return first;
  return fmt::format("{} (at `{}`)", first,
                     job.input.substr(from, job.input.find('\n', from) - from));
}

std::string netns_path_of(const std::string& netns) {
  return fmt::format("{}/{}", kNetnsFolder, netns);
}

}  // namespace

Result<std::string> run(const LabEntry& lab_entry, const LabJob& job) {
  WEFT_TRY(const Namespaces namespaces, open_namespaces(lab_entry));
  WEFT_TRY(const os::FileDescriptor input, as_file(job.input));
  const std::string path = job.netns.empty() ? std::string() : netns_path_of(job.netns);
  std::vector<char*> command;
  for (const std::string& word : job.command) command.push_back(const_cast<char*>(word.c_str()));
  command.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return os::system_error("lab: pipe");
  os::FileDescriptor from_child(ends[0]), to_parent(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return os::system_error("lab: fork");
  if (pid == 0) {
    if (dup2(input.get(), STDIN_FILENO) < 0 || dup2(to_parent.get(), STDOUT_FILENO) < 0 ||
        dup2(to_parent.get(), STDERR_FILENO) < 0)
      _exit(125);
    if (lab_entry.lock >= 0) fcntl(lab_entry.lock, F_SETFD, 0);
    child(namespaces, job, path.empty() ? nullptr : path.c_str(), command.data());
  }
  to_parent.reset();
  const std::string output = read_all(from_child.get());
  const int status = wait_for(pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  const std::string where = job.netns.empty() ? "" : " in " + job.netns;
  const std::string who = job.command.empty() ? "settings" : job.command.front();
  if (WIFSIGNALED(status)) {
    return Error{ErrorKind::kSystem, fmt::format("lab: {}{} was interrupted by signal {}", who,
                                                 where, WTERMSIG(status))};
  }
  return Error{ErrorKind::kSystem,
               fmt::format("lab: {}{}: {}", who, where, complaint(job, output))};
}

Result<void> enter(const LabEntry& lab_entry, const std::string& netns) {
  WEFT_TRY(const Namespaces namespaces, open_namespaces(lab_entry));
  const std::string path = netns_path_of(netns);
  if (const char* failed = enter_namespaces(namespaces, netns.empty() ? nullptr : path.c_str()))
    return os::system_error(std::string("lab: ") + failed);
  return {};
}

Result<std::string> find_tool(const std::string& name) {
  const char* const path = std::getenv("PATH");
  // Some users do not have the folders of system tools in PATH.
  std::string folders = std::string(path != nullptr ? path : "") + ":/usr/sbin:/sbin:/usr/bin:/bin";
  while (!folders.empty()) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    const std::string file = folders.substr(0, end) + "/" + name;
    if (file.front() == '/' && end > 0 && access(file.c_str(), X_OK) == 0) return file;
    folders.erase(0, end + 1);
  }
  return Error{ErrorKind::kNotFound,
               fmt::format("lab: `{}` is not installed; `tools/install-deps network`, or the "
                           "Debian package {}",
                           name, name == "nft" ? "nftables" : "iproute2")};
}

std::vector<std::string> missing_tools() {
  std::vector<std::string> missing;
  for (const char* const tool : kLabTools) {
    if (!find_tool(tool)) missing.emplace_back(tool);
  }
  return missing;
}

}  // namespace weft::lab
