/* A container's program that writes what it likes into its own record of turns. */
#ifndef LIE_H
#define LIE_H

/*
 * Writes into the activity file in `directory`, again and again, about the GPU of this UUID; does not return.
 *
 *     hold     has the turn, always
 *     wait     was charged nothing and waits for the turn, and never takes it
 *     wake     the same as hold, and wakes those that wait for its end all the time
 *     first    was charged nothing, beside a program that takes turns
 *     last     was charged more than anybody ever was, and then nothing
 *     apart    takes no turns, beside a program that launches all the same
 *     cut      has the turn, and cuts the file and makes it whole again
 */
int lie(const char *directory, const char *manner, const char *uuid);

#endif
