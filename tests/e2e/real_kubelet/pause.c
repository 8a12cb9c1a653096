/* The only program of the image of the test's pods: with the word `done` it ends at once, else it waits for SIGTERM.
 * A container's first process has no default action for signals, so it must handle the one that ends it. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void end(int number) {
  (void)number;
  _exit(0);
}

int main(int count, char **words) {
  if (count > 1 && strcmp(words[1], "done") == 0) return 0;
  signal(SIGTERM, end);
  for (;;) pause();
}
