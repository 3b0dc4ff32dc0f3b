"""Client quotas on one broker: what clients have used up, and for how long they are held back."""
