// Requests and answers over a unix socket. Both ends run in one thread, because no call blocks.
#include "os/control_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

namespace weft::net {
namespace {

// A folder that is removed at the end of the test.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/weft-control-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file() const { return path_ + "/s"; }

 private:
  std::string path_;
};

// A client socket without os::ask(), which would block.
int connected(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

TEST(ControlSocket, RequestIsAnswered) {
  const Folder folder;
  auto server = os::ControlSocket::listen(folder.file());
  ASSERT_TRUE(server.has_value());
  EXPECT_FALSE(server->next().has_value());
  Result<std::string> answer = Error{};
  std::thread client([&] { answer = os::ask(folder.file(), "what is it\n"); });
  for (;;) {
    std::array<pollfd, os::ControlSocket::kClientsMax + 1> fds;
    const std::size_t count = server->descriptors(fds);
    ASSERT_GT(poll(fds.data(), static_cast<nfds_t>(count), 5'000), 0);
    const auto request = server->next();
    if (!request) continue;
    EXPECT_EQ(request->text, "what is it");
    server->answer(*request, std::string(200'000, 'x'));
    break;
  }
  client.join();
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->size(), 200'000u);
}

TEST(ControlSocket, ClientWithTooLongARequestIsDisconnected) {
  const Folder folder;
  auto server = os::ControlSocket::listen(folder.file());
  ASSERT_TRUE(server.has_value());
  const int client = connected(folder.file());
  const std::string large(os::ControlSocket::kRequestMax + 1, 'x');
  ASSERT_EQ(send(client, large.data(), large.size(), 0), static_cast<ssize_t>(large.size()));
  EXPECT_FALSE(server->next().has_value());
  char byte = 0;
  EXPECT_EQ(recv(client, &byte, 1, MSG_DONTWAIT), 0) << "it was closed";
  close(client);
}

TEST(ControlSocket, ClientsAboveTheLimitWait) {
  const Folder folder;
  auto server = os::ControlSocket::listen(folder.file());
  ASSERT_TRUE(server.has_value());
  std::vector<int> clients;
  for (std::size_t i = 0; i < os::ControlSocket::kClientsMax + 1; ++i) {
    clients.push_back(connected(folder.file()));
    ASSERT_EQ(send(clients.back(), "hello", 5, 0), 5);
  }
  for (std::size_t i = 0; i < os::ControlSocket::kClientsMax; ++i) EXPECT_TRUE(server->next());
  EXPECT_FALSE(server->next());
  close(clients.front());
  EXPECT_FALSE(server->next()) << "a place becomes free";
  EXPECT_TRUE(server->next());
  for (std::size_t i = 1; i < clients.size(); ++i) close(clients[i]);
}

TEST(ControlSocket, NewServerReplacesOnlyADeadOne) {
  const Folder folder;
  {
    auto first = os::ControlSocket::listen(folder.file());
    ASSERT_TRUE(first.has_value());
    struct stat about {};
    ASSERT_EQ(stat(folder.file().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600u);
    const auto second = os::ControlSocket::listen(folder.file());
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().kind, ErrorKind::kWrongState);
  }
  EXPECT_NE(access(folder.file().c_str(), F_OK), 0) << "its name went with it";
  // A socket file without a listener, as a crash leaves it behind.
  const int dead = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder.file();
  std::memcpy(address.sun_path, path.c_str(), path.size());
  ASSERT_EQ(bind(dead, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(dead);
  EXPECT_TRUE(os::ControlSocket::listen(folder.file()).has_value());
  const auto nobody = os::ask(folder.file(), "hello");
  ASSERT_FALSE(nobody.has_value());
  EXPECT_EQ(nobody.error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace weft::net
