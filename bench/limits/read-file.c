/* read-file COUNT PATH: opens, reads and closes a file COUNT times; prints how often it does so in a second of CPU time. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static double cpu_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  long count = atol(argv[1]);
  char buffer[64];
  double begun = cpu_seconds();
  for (long i = 0; i < count; i++) {
    int file = open(argv[2], O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, buffer, sizeof buffer) < 0) {
      perror(argv[2]);
      return 1;
    }
    close(file);
  }
  printf("%f\n", (double)count / (cpu_seconds() - begun));
  return 0;
}
