/* Whether something listens where a host engine should. See libdcgm.h. */
#include "libdcgm.h"

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int accepts(int family, const struct sockaddr *address, socklen_t size)
{
    int file = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int accepted = file >= 0 && connect(file, address, size) == 0;
    if (file >= 0)
        close(file);
    return accepted;
}

static int accepts_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return 0;
    strcpy(address.sun_path, path);
    return accepts(AF_UNIX, (const struct sockaddr *)&address, sizeof address);
}

/* `host:port`, the host in brackets where it is an IPv6 address, or `host` alone. */
static int accepts_tcp(const char *text)
{
    char host[TEXT], *port = "5555";
    struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM};
    if (strlen(text) >= sizeof host)
        return 0;
    strcpy(host, text[0] == '[' ? text + 1 : text);
    char *end = text[0] == '[' ? strchr(host, ']') : strrchr(host, ':');
    char *colon = end ? strrchr(end, ':') : NULL;
    if (colon)
        port = colon + 1;
    if (end)
        *end = 0;
    if (getaddrinfo(host, port, &hints, &found) != 0)
        return 0;
    int accepted = 0;
    for (const struct addrinfo *each = found; each && !accepted; each = each->ai_next)
        accepted = accepts(each->ai_family, each->ai_addr, each->ai_addrlen);
    freeaddrinfo(found);
    return accepted;
}

int something_listens(const char *address, int is_unix_socket)
{
    return is_unix_socket ? accepts_unix(address) : accepts_tcp(address);
}
