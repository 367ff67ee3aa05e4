// OtherProcess: the second process of a test. It is forked before this process opens a device; the
// destructor kills it and waits for its end. The processes exchange values over a socket (Line).
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace weft::mrc_test {

class Line {
 public:
  explicit Line(int fd) : fd_(fd) {}
  template <typename T>
  void send(const T& value) const {
    EXPECT_EQ(write(fd_, &value, sizeof(value)), static_cast<ssize_t>(sizeof(value)));
  }
  // The next value. If the other process has ended, or sends nothing for a minute, the test fails
  // and the result is T{}.
  template <typename T>
  T receive() const {
    T value{};
    std::size_t got = 0;
    while (got < sizeof(value)) {
      const ssize_t count = read(fd_, reinterpret_cast<char*>(&value) + got, sizeof(value) - got);
      if (count <= 0) {
        ADD_FAILURE() << "the other process says nothing";
        return T{};
      }
      got += static_cast<std::size_t>(count);
    }
    return value;
  }

 private:
  int fd_;
};

class OtherProcess {
 public:
  // Runs `body` in the other process. If a check fails there, join() returns 1.
  explicit OtherProcess(const std::function<void(const Line&)>& body) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    for (const int end : ends)
      setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      body(Line(ends[1]));
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    close(ends[1]);
    fd_ = ends[0];
  }
  ~OtherProcess() {
    if (pid_ > 0) kill_process();
    close(fd_);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  Line line() const { return Line(fd_); }
  void kill_process() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // Waits until the process ends, and returns its exit status. 0: no check failed.
  int join() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
};

}  // namespace weft::mrc_test
