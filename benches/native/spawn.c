/* The least that running a program takes: a pipe, posix_spawn, reading to the
 * end of the output, waitpid.
 *
 *   cc -O2 -o spawn spawn.c
 *   ./spawn RUNS RATE PROGRAM [ARGUMENT...]
 *
 * RATE runs a second, one after the other. Prints JSON with the CPU
 * microseconds per run, the children's included. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double cpu(int who) {
  struct rusage r;
  getrusage(who, &r);
  return r.ru_utime.tv_sec + r.ru_utime.tv_usec / 1e6 + r.ru_stime.tv_sec + r.ru_stime.tv_usec / 1e6;
}
static double all(void) { return cpu(RUSAGE_SELF) + cpu(RUSAGE_CHILDREN); }

static int run(char **argv) {
  int p[2], status;
  char buf[4096];
  pid_t pid;
  if (pipe2(p, O_CLOEXEC)) return -1;
  posix_spawn_file_actions_t a;
  posix_spawn_file_actions_init(&a);
  posix_spawn_file_actions_adddup2(&a, p[1], 1);
  posix_spawn_file_actions_adddup2(&a, p[1], 2);
  char *none[] = {NULL};
  int failed = posix_spawn(&pid, argv[0], &a, NULL, argv, none);
  posix_spawn_file_actions_destroy(&a);
  close(p[1]);
  if (!failed) while (read(p[0], buf, sizeof buf) > 0) {}
  close(p[0]);
  if (failed || waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -1;
}

int main(int argc, char **argv) {
  if (argc < 4) { fprintf(stderr, "usage: spawn RUNS RATE PROGRAM [ARGUMENT...]\n"); return 2; }
  long runs = atol(argv[1]), failures = 0;
  double rate = atof(argv[2]);
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  double before = all();
  for (long i = 0; i < runs; i++) {
    if (run(argv + 3)) failures++;
    next.tv_nsec += 1e9 / rate;
    while (next.tv_nsec >= 1000000000) { next.tv_nsec -= 1000000000; next.tv_sec++; }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
  }
  printf("{\"failures\":%ld,\"cpu_us_per_probe\":%.2f}\n", failures, (all() - before) * 1e6 / runs);
  return 0;
}
